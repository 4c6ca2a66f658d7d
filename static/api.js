/**
 * Calls of the HTTP API: JSON in, JSON out, faults as `Problem`.
 *
 * The session cookie (or, in a host page, the token of `useAccess`) proves who asks. Every change goes through here and
 * never over the socket. Must never retry by itself: a lost answer is told to the person, who decides.
 */
import { currentLanguage, t } from './i18n.js';

const access = { base: new URL('..', import.meta.url), getToken: null };

/** Points all calls at another server, or makes them carry a token. */
export function useAccess({ url, getToken } = {}) {
  if (url) access.base = new URL(url.endsWith('/') ? url : `${url}/`, document.baseURI);
  if (getToken) access.getToken = getToken;
}

/** The absolute address of a path below the server's root. */
export function address(path) {
  return new URL(path.replace(/^\//, ''), access.base);
}

/** A refused or lost call. `status` is 0 when there was no answer; `errors` are the faults of single fields. */
export class Problem extends Error {
  constructor(status, body = {}) {
    super(body.detail || body.title || t('error.network'));
    this.status = status;
    this.code = body.code ?? '';
    this.errors = body.errors ?? [];
    this.requestId = body.requestId ?? null;
    this.body = body;
  }
}

/** The headers that each call carries. */
export async function headers(extra = {}) {
  const token = access.getToken ? await access.getToken() : null;
  return { Accept: 'application/json', 'Accept-Language': currentLanguage(), ...(token ? { Authorization: `Bearer ${token}` } : {}), ...extra };
}

/** One call. Gives the decoded body (null for 204); throws a `Problem`. */
export async function call(method, path, body) {
  let answer;
  try {
    answer = await fetch(address(path), {
      method,
      credentials: access.getToken ? 'omit' : 'same-origin',
      headers: await headers(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      body: body === undefined ? undefined : JSON.stringify(body),
      cache: 'no-store',
    });
  } catch {
    throw new Problem(0);
  }
  const data = answer.status === 204 ? null : await answer.json().catch(() => null);
  if (!answer.ok) throw new Problem(answer.status, data ?? {});
  return data;
}

/**
 * Sends a file as an octet-stream and tells how far it is (0 to 1). Gives `{id, name, size, sha256}`. XMLHttpRequest,
 * because fetch does not tell upload progress.
 */
export async function upload(file, onProgress, signal) {
  const sent = await headers({ 'Content-Type': 'application/octet-stream' });
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
