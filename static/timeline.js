/**
 * The timeline on the task's page: what happened in words, how the chunks in between went, and why attempts failed.
 *
 * The same lines as src/web/pages/timeline.rs writes. Reads nothing: the page gives it what somebody read. The chunks
 * since the last line grow with what the socket brings.
 */
import { h, setAttribute, setText } from './dom.js';
import { has, t } from './i18n.js';
import { duration, timeElement } from './time.js';
import { ended } from './words.js';

export class Timeline {
  #list;
  #attempts;
  #events;
  #earlier;
  #tail = null;

  /** Over the list and the place for failed attempts that the server wrote. */
  constructor(list, attempts, { events, earlier }) {
    this.#list = list;
    this.#attempts = attempts;
    this.#events = events;
    this.#earlier = earlier;
    this.#list.scrollTop = this.#list.scrollHeight;
    this.#tail = list.querySelector('.tb-event-chunks:last-child');
  }

  /** The place after which the shown lines stand, for whoever reads them anew. */
  get earlier() {
    return this.#earlier;
  }

  /** Takes what somebody read anew, and shows its end. */
  take(events, task, now) {
    this.#events = events;
    const lines = this.#earlier > 0 ? [h('li', { class: 'tb-event tb-event-chunks' }, t('timeline.earlier', { n: this.#earlier }))] : [];
    events.forEach((event, at) => {
      lines.push(stepElement(event, task));
      const next = events[at + 1];
      const text = next ? chunksBetween(event, next.chunk, Date.parse(next.at)) : '';
      if (text) lines.push(chunksElement(text));
    });
    this.#tail = null;
    this.#list.replaceChildren(...lines);
    this.paint(task, now);
    this.#list.scrollTop = this.#list.scrollHeight;
    const failed = events.filter(({ failure }) => failure);
    setAttribute(this.#attempts, 'hidden', failed.length === 0);
    this.#attempts.replaceChildren(...failed.map((event) => h('li', {}, h('span', {}, failedText(event, task)), timeElement(event.at), h('span', { class: 'task-attempt-message' }, event.failure.message))));
  }

  /** The chunks since the last line. */
  paint(task, now) {
    const last = this.#events.at(-1);
    const text = last && !ended(task) ? chunksBetween(last, task.chunks, now) : '';
    if (text && !this.#tail) {
      this.#tail = chunksElement(text);
      this.#list.append(this.#tail);
    } else if (text) {
      setText(this.#tail, text);
    }
  }
}

/** "12 chunks, 1.2 s each", or nothing. */
function chunksBetween(event, chunk, until) {
  const count = chunk - event.chunk;
  if (event.to !== 'running' || !(count > 0)) return '';
  const each = Math.trunc(Math.max(0, until - Date.parse(event.at)) / count);
  const span = each < 100 ? t('time.instant') : each < 10_000 ? t('time.s', { s: Math.round(each / 100) / 10 }) : duration(each);
  return t('timeline.chunks', { n: count, each: span });
}

function chunksElement(text) {
  return h('li', { class: 'tb-event tb-event-chunks' }, text);
}

function stepElement(event, task) {
  const by = [event.actor ? t('timeline.by', { actor: event.actor }) : null, event.node ? t('timeline.on', { node: event.node }) : null];
  return h('li', { class: 'tb-event', 'data-state': event.to, 'data-failed': Boolean(event.failure) },
    h('span', { class: 'tb-event-label' }, labelOf(event, task), by.filter(Boolean).map((text) => h('span', { class: 'tb-help' }, ' ', text))),
    event.failure?.message ? h('span', { class: 'tb-event-message' }, event.failure.message) : null,
    timeElement(event.at));
}

function labelOf(event, task) {
  const at = event.reason.indexOf(':');
  const [word, facts] = at < 0 ? [event.reason, ''] : [event.reason.slice(0, at), event.reason.slice(at + 1).trim()];
  if (Number.isFinite(event.failure?.delayMs)) return failedText(event, task);
  if (word === 'total-revised') return revised(facts);
  const label = has(`reason.${word}`) ? t(`reason.${word}`) : word;
  return facts ? `${label}: ${facts}` : label;
}

/** "Attempt 1 of 3 failed, next one after 5 s". A line tells the attempt that stands after it. */
function failedText({ attempt, to, failure }, task) {
  const n = Math.max(1, ended({ state: to }) ? attempt : attempt - 1);
  const max = task.maxAttempts;
  return Number.isFinite(failure.delayMs) ? t('timeline.failed.next', { n, max, delay: duration(Math.round(failure.delayMs / 1000) * 1000) }) : t('timeline.failed', { n, max });
}

/** "4000 to 5000", "unknown to 5000" in words. */
function revised(facts) {
  const [from, to] = facts.split(' to ').map(Number);
  if (!Number.isFinite(to)) return t('reason.total-revised');
  return Number.isFinite(from) ? t('say.revised', { from, to }) : t('say.total_known', { to });
}
