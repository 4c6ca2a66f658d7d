/**
 * Calls of the HTTP API: JSON in, JSON out, faults as `Problem`.
 *
 * The session cookie, or in a page of another origin the token of `useAccess`, proves who asks. A token is asked for when
 * it is first needed, shared by all calls, and asked for anew when the server no longer takes it. Every change goes
 * through here and never over the socket. Must never retry by itself what the server may have done: a lost answer is told
 * to the person, who decides. (A 401 is no such answer: nothing was done under it.)
 */
import { safeHref } from './dom.js';
import { currentLanguage, t } from './i18n.js';
import { HOSTED } from './place.js';

const access = { base: new URL('..', import.meta.url), getToken: null, token: null, taskUrl: null };
let tell = null;
const told = new Promise((resolve) => (tell = resolve));

/**
 * Points all calls at another server, or makes them carry the token that `getToken` gives (a text or a promise of one).
 * `taskUrl` is where the host page shows a task, with `{id}` in it; empty where it shows none. Gives whether another one
 * speaks from now on.
 */
export function useAccess({ url, getToken, taskUrl } = {}) {
  if (url) access.base = new URL(url.endsWith('/') ? url : `${url}/`, document.baseURI);
  access.taskUrl = taskUrl ?? access.taskUrl;
  if (!getToken || getToken === access.getToken) return false;
  Object.assign(access, { getToken, token: null });
  tell();
  return true;
}

/**
 * Waits until it is known who speaks. Only the session cookie of our own pages speaks by itself; a page of another origin
 * has to give a `getToken`, early or late, and one of our origin may do so until its scripts have run.
 */
export function accessKnown() {
  if (HOSTED && access.base.origin !== location.origin) return told;
  if (!HOSTED || document.readyState === 'complete') return undefined;
  return Promise.race([told, new Promise((parsed) => addEventListener('load', parsed, { once: true }))]);
}

/** Whether a host page's token speaks, and not the session cookie. */
export function usesToken() {
  return Boolean(access.getToken);
}

/**
 * The token: the one at hand, or with `fresh` a new one; null where the cookie speaks. Those who ask at once share an
 * answer. Throws a `Problem` that says so when the host page gives none.
 */
export async function token({ fresh = false } = {}) {
  if (!access.getToken) return null;
  const { getToken } = access;
  if (fresh && access.token?.settled) access.token = null;
  access.token ??= asked(getToken);
  try {
    return await access.token.promise;
  } catch (problem) {
    if (access.getToken === getToken) access.token = null;
    throw problem;
  }
}

function asked(getToken) {
  const flight = { settled: false };
  flight.promise = (async () => {
    try {
      const given = await getToken();
      if (typeof given === 'string' && given) return given;
    } catch (reason) {
      throw new Problem(0, { detail: t('error.token', { reason: reason?.message ?? String(reason) }) });
    } finally {
      flight.settled = true;
    }
    throw new Problem(401, { detail: t('error.signed_out') });
  })();
  return flight;
}

/** The absolute address of a path below the server's root. */
export function address(path) {
  return new URL(path.replace(/^\//, ''), access.base);
}

/**
 * The attributes of a link to one of our pages. From another application's page, which may hold half a form, it opens beside
 * it; none where that page has said where its people see a task, as they may not have an account here.
 */
export function linkTo(path) {
  if (!HOSTED) return { href: address(path).href };
  return access.taskUrl === null ? { href: address(path).href, target: '_blank', rel: 'noopener' } : {};
}

/** The same of a link to a task. */
export function linkToTask(id) {
  return HOSTED && access.taskUrl ? { href: safeHref(access.taskUrl.replaceAll('{id}', id)) } : linkTo(`tasks/${id}`);
}

/** A refused or lost call. `status` is 0 when there was no answer; `errors` are the faults of single fields. */
export class Problem extends Error {
  constructor(status, body = {}) {
    super(body.detail || body.title || t('error.network'));
    this.status = status;
    this.errors = body.errors ?? [];
    this.requestId = body.requestId ?? null;
  }
}

/** The headers that each call carries. */
async function headers(extra, fresh = false) {
  const proof = await token({ fresh });
  return { Accept: 'application/json', 'Accept-Language': currentLanguage(), ...(proof ? { Authorization: `Bearer ${proof}` } : {}), ...extra };
}

/** One call. Gives the decoded body (null for 204); throws a `Problem`. */
export async function call(method, path, body) {
  const options = { method, body: body === undefined ? undefined : JSON.stringify(body) };
  const extra = body === undefined ? {} : { 'Content-Type': 'application/json' };
  let answer = await send(path, options, await headers(extra));
  if (answer.status === 401 && usesToken()) answer = await send(path, options, await headers(extra, true));
  const data = answer.status === 204 ? null : await answer.json().catch(() => null);
  if (!answer.ok) throw new Problem(answer.status, data ?? {});
  return data;
}

function send(path, options, sent) {
  const credentials = usesToken() ? 'omit' : 'same-origin';
  return fetch(address(path), { ...options, headers: sent, credentials, cache: 'no-store' }).catch(() => {
    throw new Problem(0);
  });
}

/** Takes a file of the server over into the browser's downloads; a link alone would not carry the token. */
export async function download(path, name) {
  const answer = await send(path, {}, await headers({}, true));
  if (!answer.ok) throw new Problem(answer.status, await answer.json().catch(() => ({})));
  const link = document.createElement('a');
  link.href = URL.createObjectURL(await answer.blob());
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/**
 * Sends a file as an octet-stream and tells how far it is (0 to 1). Gives `{id, name, size, sha256}`. XMLHttpRequest,
 * because fetch does not tell upload progress.
 */
export async function upload(file, onProgress, signal) {
  const sent = await headers({ 'Content-Type': 'application/octet-stream' }, usesToken());
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open('POST', address(`api/v1/uploads?name=${encodeURIComponent(file.name)}`));
    for (const [name, value] of Object.entries(sent)) request.setRequestHeader(name, value);
    request.responseType = 'json';
    request.upload.addEventListener('progress', (event) => onProgress(event.lengthComputable ? event.loaded / event.total : 0));
    request.addEventListener('load', () => {
      if (request.status >= 200 && request.status < 300 && request.response) resolve(request.response);
      else reject(new Problem(request.status, request.response ?? {}));
    });
    request.addEventListener('error', () => reject(new Problem(0)));
    request.addEventListener('abort', () => reject(new Problem(0)));
    signal?.addEventListener('abort', () => request.abort());
    request.send(file);
  });
}
