/**
 * The live indicator and the banner: how true the page is at this moment, in words.
 *
 * One indicator follows one connection. The banner appears only after 5 s without a live socket, or when a read
 * failed, and tells as of when the page is true; it must never say more than the connection knows.
 */
import { h, setAttribute, setText } from './dom.js';
import { t } from './i18n.js';
import { address, usesToken } from './api.js';
import { full } from './time.js';

const BANNER_AFTER_MS = 5_000;

/** The dot and its word. */
export function liveIndicator(connection) {
  const element = h('span', { class: 'tb-live' });
  const paint = () => {
    setAttribute(element, 'data-live', connection.live);
    setText(element, t(`live.${connection.live}`));
  };
  connection.addEventListener('live', paint);
  paint();
  return element;
}

/** The banner; hidden while all is well. Also tells that a read failed, why, and offers another one. */
export function liveBanner(connection) {
  const text = h('span');
  const link = h('a', { class: 'tb-link', href: signInAddress(), hidden: true }, t('live.sign_in'));
  const again = h('button', { class: 'tb-button', type: 'button', 'data-size': 'small', hidden: true, onclick: () => connection.refresh().catch(() => {}) }, t('list.try_again'));
  const element = h('div', { class: 'tb-banner', hidden: true }, text, link, again);
  let timer = 0;
  let late = false;
  const paint = () => {
    const { live, fault } = connection;
    const signedOut = live === 'signed-out';
    const shown = signedOut || late || Boolean(fault);
    setAttribute(element, 'hidden', !shown);
    if (!shown) return;
    setText(text, sentences(connection).join(' '));
    setAttribute(link, 'hidden', !signedOut || usesToken());
    setAttribute(again, 'hidden', signedOut || !fault);
    setAttribute(element, 'data-tone', signedOut || fault || live === 'offline' ? 'bad' : 'warn');
  };
  const change = () => {
    if (connection.live === 'live') {
      clearTimeout(timer);
      timer = 0;
      late = false;
    } else {
      timer ||= setTimeout(() => {
        late = true;
        paint();
      }, BANNER_AFTER_MS);
    }
    paint();
  };
  connection.addEventListener('live', change);
  connection.addEventListener('read', paint);
  change();
  return element;
}

function sentences({ live, fault, trueAt }) {
  if (live === 'signed-out') return [t('error.signed_out')];
  const told = trueAt === null ? t('live.nothing') : t('live.as_of', { time: full(trueAt) });
  const why = fault && t('live.not_read', { reason: fault.message });
  const request = fault?.requestId && t('error.request', { id: fault.requestId });
  return [why, request, told].filter(Boolean);
}

/** The sign-in, and after it back to the page that is open. */
export function signInAddress() {
  const to = address('login');
  if (to.origin === location.origin) to.searchParams.set('next', location.pathname + location.search);
  return to.href;
}
