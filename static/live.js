/**
 * The live indicator and the banner: how true the page is at this moment, in words.
 *
 * One indicator follows one connection. The banner appears only after 5 s without a live socket and tells as of when the
 * page is true; it must never say more than the connection knows.
 */
import { h, setAttribute, setText } from './dom.js';
import { t } from './i18n.js';
import { address } from './api.js';
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

/** The banner; hidden while all is well. */
export function liveBanner(connection) {
  const text = h('span');
  const link = h('a', { class: 'tb-link', href: address('login').href, hidden: true }, t('live.sign_in'));
  const element = h('div', { class: 'tb-banner', hidden: true }, text, link);
  let timer = 0;
  const show = () => {
    const signedOut = connection.live === 'signed-out';
    setText(text, signedOut ? t('error.signed_out') : t('live.as_of', { time: full(connection.trueAt) }));
    setAttribute(link, 'hidden', !signedOut);
    setAttribute(element, 'data-tone', signedOut || connection.live === 'offline' ? 'bad' : 'warn');
    setAttribute(element, 'hidden', !signedOut && connection.trueAt === null);
  };
  const change = () => {
    const fine = connection.live === 'live' || connection.live === 'connecting';
    if (fine) {
      clearTimeout(timer);
      timer = 0;
      setAttribute(element, 'hidden', true);
    } else if (connection.live === 'signed-out' || !element.hidden) {
      show();
    } else {
      timer ||= setTimeout(show, BANNER_AFTER_MS);
    }
  };
  connection.addEventListener('live', change);
  change();
  return element;
}
