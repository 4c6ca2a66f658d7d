/**
 * Time as people read it: full instants in the viewer's zone, spans, and the rounded time left.
 *
 * "Now" is the server's: its clock is taken from the page or the socket and carried on by the monotonic clock, so a
 * computer whose clock is an hour off, or is set while the page is open, shows the same. Instants are RFC 3339 texts on
 * the way in; spans are milliseconds. Never shows an instant in another form than yyyy-MM-dd HH:mm:ss, and never a
 * negative span.
 */
import { t } from './i18n.js';
import { h, setAttribute, setText } from './dom.js';
import { HOSTED } from './place.js';

let base = { server: Date.now(), local: performance.now() };
let zone = chosenZone();
let format = makeFormat(zone);

function chosenZone() {
  const chosen = HOSTED ? '' : document.documentElement.dataset.zone;
  try {
    if (chosen) return new Intl.DateTimeFormat('en', { timeZone: chosen }) && chosen;
  } catch {
    // The server knows a zone that this browser does not: then the browser's own is shown, and named.
  }
  return browserZone();
}

function browserZone() {
  return Intl.DateTimeFormat().resolvedOptions().timeZone || 'UTC';
}

/** Swedes write an instant as we do. */
function makeFormat(timeZone) {
  return new Intl.DateTimeFormat('sv', { timeZone, dateStyle: 'short', timeStyle: 'medium' });
}

/** Tells what the server's clock showed just now. */
export function setServerTime(instant) {
  const server = typeof instant === 'number' ? instant : Date.parse(instant);
  if (Number.isFinite(server)) base = { server, local: performance.now() };
}

/** The server's clock now, in milliseconds since 1970. */
export function serverNow() {
  return base.server + (performance.now() - base.local);
}

/** Tells the server which zone this browser is in, so that its next page is written in it. */
export function rememberZone() {
  const cookie = `tb_zone=${encodeURIComponent(browserZone())}`;
  if (document.cookie.split('; ').includes(cookie)) return;
  const secure = location.protocol === 'https:' ? '; Secure' : '';
  document.cookie = `${cookie}; Path=/; Max-Age=31536000; SameSite=Lax${secure}`;
}

/** The viewer's zone, as an IANA name. */
export function viewerZone() {
  return zone;
}

/** An instant as yyyy-MM-dd HH:mm:ss in the viewer's zone; an empty text for none. */
export function full(instant) {
  const at = typeof instant === 'number' ? instant : Date.parse(instant ?? '');
  return Number.isFinite(at) ? format.format(at).padStart(19, '0') : '';
}

/** The calendar day of an instant in the viewer's zone, yyyy-MM-dd. */
export function day(instant) {
  return full(instant).slice(0, 10);
}

/** A `<time>` element for an instant: full time as text, zone and relative time in the tooltip. */
export function timeElement(instant) {
  const element = h('time', { class: 'tb-time' });
  setTime(element, instant);
  return element;
}

/** Points a `<time>` element at an instant; with none it is emptied. */
export function setTime(element, instant) {
  const text = full(instant);
  setText(element, text);
  setAttribute(element, 'datetime', text ? new Date(instant).toISOString() : null);
  setAttribute(element, 'title', text ? named(instant) : null);
}

/** The zone, and how long ago it was; what lies ahead has no "ago". */
function named(instant) {
  return new Date(instant).getTime() > serverNow() + 1000 ? zone : `${zone} · ${ago(instant)}`;
}

/** Rewrites every server-written `<time datetime>` below `root` in the viewer's zone. */
export function localizeTimes(root) {
  for (const element of root.querySelectorAll('time[datetime]')) setTime(element, element.getAttribute('datetime'));
}

/** How long ago an instant was, in one unit; the future counts as just now. */
export function ago(instant) {
  const past = Math.max(0, serverNow() - (typeof instant === 'number' ? instant : Date.parse(instant)));
  const minutes = Math.floor(past / 60_000);
  if (minutes < 1) return t('ago.now');
  if (minutes < 60) return t('ago.minutes', { n: minutes });
  if (minutes < 1440) return t('ago.hours', { n: Math.floor(minutes / 60) });
  return t('ago.days', { n: Math.floor(minutes / 1440) });
}

/** A measured span in words, its two largest units. */
export function duration(ms) {
  const seconds = Math.floor(Math.max(0, ms) / 1000);
  if (seconds < 1) return t('time.ms');
  if (seconds < 60) return t('time.s', { s: seconds });
  if (seconds < 3600) return t('time.ms_s', { m: Math.floor(seconds / 60), s: seconds % 60 });
  if (seconds < 86_400) return t('time.hm', { h: Math.floor(seconds / 3600), m: Math.floor((seconds % 3600) / 60) });
  return t('time.dh', { d: Math.floor(seconds / 86_400), h: Math.floor((seconds % 86_400) / 3600) });
}

/**
 * A remaining time rounded to what an estimate can honestly say: under a minute, whole minutes up to 10, steps of 5 up to
 * 2 hours, then half hours. Gives `{unit: 'under' | 'minutes' | 'hours', n}`.
 */
export function roundRemaining(seconds) {
  const minutes = Math.max(0, seconds) / 60;
  if (minutes < 1) return { unit: 'under', n: 0 };
  if (minutes <= 10) return { unit: 'minutes', n: Math.round(minutes) };
  const stepped = Math.round(minutes / 5) * 5;
  return stepped < 120 ? { unit: 'minutes', n: stepped } : { unit: 'hours', n: Math.round(minutes / 30) / 2 };
}

/** A rounded remaining time as a span in words, without "about". */
export function remainingSpan(seconds) {
  const { unit, n } = roundRemaining(seconds);
  return unit === 'hours' ? t('eta.hours', { n }) : t('eta.minutes', { n: Math.max(1, n) });
}

const watchers = new Set();
let ticking = null;

/** Calls `watcher` once a second while the page is visible, for texts that age. Gives the function that ends it. */
export function everySecond(watcher) {
  watchers.add(watcher);
  ticking ??= setInterval(() => {
    if (!document.hidden) for (const each of watchers) each();
  }, 1000);
  return () => watchers.delete(watcher);
}
