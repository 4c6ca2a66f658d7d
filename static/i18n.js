/**
 * The words, from the message catalogues that the server's pages use too (i18n/en.json, i18n/zh-CN.json).
 *
 * A message is a text with `{name}` places, or an object of texts by plural category (`one`, `few`, `other`, …) chosen
 * by `n`; with `"type": "ordinal"` the categories are those of 1st, 2nd, 3rd. Categories, digits and grouping come from
 * Intl for the catalogue's language, so a language with other categories needs a catalogue and no code. Never builds a
 * sentence from parts and never adds an "s". A missing key shows as the key, so that it is seen.
 */
import { catalogue } from './place.js';

let language = 'en';
let messages = {};
let formats = makeFormats('en');

function makeFormats(tag) {
  return {
    number: new Intl.NumberFormat(tag, { maximumFractionDigits: 1 }),
    percent: new Intl.NumberFormat(tag, { style: 'percent', maximumFractionDigits: 0 }),
    // By what is shown: 1.04 is written as 1, so it counts as 1.
    cardinal: new Intl.PluralRules(tag, { maximumFractionDigits: 1 }),
    ordinal: new Intl.PluralRules(tag, { type: 'ordinal' }),
  };
}

/** The language of this page: what a widget or the page says, else what the browser prefers; always one that has a catalogue. */
export function pageLanguage(lang = '') {
  const wanted = [lang, document.documentElement.lang, ...navigator.languages];
  for (const tag of wanted) {
    if (/^zh\b/i.test(tag)) return 'zh-CN';
    if (/^en\b/i.test(tag)) return 'en';
  }
  return 'en';
}

/** Loads the catalogue of a language and makes it the one in use. */
export async function useLanguage(tag) {
  const answer = await fetch(new URL(catalogue(tag), import.meta.url));
  useMessages(tag, await answer.json());
}

/** Takes a catalogue that is at hand. */
export function useMessages(tag, catalogue) {
  language = tag;
  messages = catalogue;
  formats = makeFormats(tag);
}

/** The language in use, as a BCP 47 tag. */
export function currentLanguage() {
  return language;
}

/** Whether the catalogue has this key. */
export function has(key) {
  return Object.hasOwn(messages, key);
}

/** The message for `key` with its places filled. Numbers are formatted for the language; texts go in as they are. */
export function t(key, values = {}) {
  const message = messages[key];
  if (message === undefined) return key;
  return fill(typeof message === 'string' ? message : choose(message, values.n, formats), values);
}

/** The text of a plural message for the amount `n`. */
export function choose(message, n, rules) {
  const category = (message.type === 'ordinal' ? rules.ordinal : rules.cardinal).select(Number(n ?? 0));
  return message[category] ?? message.other;
}

function fill(text, values) {
  return text.replace(/\{(\w+)\}/g, (place, name) => {
    const value = values[name];
    if (value === undefined || value === null) return place;
    return typeof value === 'number' ? formats.number.format(value) : String(value);
  });
}

/** A number, grouped as the language groups. */
export function number(value) {
  return formats.number.format(value);
}

/** A whole percentage from 0 to 100, with its sign. */
export function percent(value) {
  return formats.percent.format(value / 100);
}

/** The noun for `n` of a unit that a handler named; a unit without a catalogue entry is shown as it is. */
export function unitName(unit, n) {
  if (!unit) return '';
  const key = `unit.${unit}`;
  return has(key) ? t(key, { n }) : unit;
}

/** A text in several languages (`{en, "zh-CN"}`), or a plain one, in the language in use. */
export function localized(text) {
  if (text === null || typeof text !== 'object') return text ?? '';
  return text[language] ?? text[language.split('-')[0]] ?? text.en ?? Object.values(text)[0] ?? '';
}

/** A size in bytes in words. */
export function size(bytes) {
  const units = ['B', 'KB', 'MB', 'GB'];
  let value = bytes;
  let step = 0;
  while (value >= 1000 && step < units.length - 1) {
    value /= 1000;
    step += 1;
  }
  return `${formats.number.format(value)} ${units[step]}`;
}
