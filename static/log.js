/**
 * The live log of one task: the last 200 lines, then what comes; earlier ones by a button, a part at a time.
 *
 * Follows the end until the person scrolls up, and offers the way back. What is missing between two lines is a visible
 * mark with its number; at most 2,000 lines are in the document, the oldest go first, and the whole log is a download. A
 * line is one text node, control codes stripped, cut when it is huge. Not a live region unless the person turns it on.
 * Must never fetch again to follow: new lines come over the socket, after a reconnect from the last one on.
 */
import { address, call } from './api.js';
import { h, icon, setAttribute } from './dom.js';
import { t } from './i18n.js';
import { preference } from './preferences.js';
import { timeElement } from './time.js';

const FIRST = 200;
const EARLIER = 200;
const MOST = 2_000;
const LONGEST = 4_000;
const NEAR_END_PX = 24;
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;

export class TaskLog {
  #id;
  #list = h('div', { class: 'tb-log', tabindex: '0', role: 'log', 'aria-live': 'off', 'aria-label': t('task.log') });
  #latest = h('button', { class: 'tb-button tb-log-latest', type: 'button', 'data-size': 'small', hidden: true, onclick: () => this.#follow(true) }, icon('down'), t('log.latest'));
  #earlier = h('button', { class: 'tb-button', type: 'button', 'data-size': 'small', hidden: true, onclick: () => this.#showEarlier() }, t('log.earlier'));
  #fault = h('p', { class: 'tb-banner', hidden: true }, t('log.failed'));
  #empty = h('p', { class: 'tb-log-empty' }, t('log.empty'));
  #following = true;
  #missing = null;
  #capped = null;
  #top = 0;
  #first = 0;
  #last = 0;
  #early = [];
  #box;

  /** A log for the task of this id; `element` is what to put into the page. */
  constructor(id) {
    this.#id = id;
    this.#box = h('input', { type: 'checkbox', checked: true, onchange: (event) => this.#follow(event.target.checked) });
    const aloud = h('input', { type: 'checkbox', checked: preference('log'), onchange: (event) => setAttribute(this.#list, 'aria-live', event.target.checked ? 'polite' : 'off') });
    setAttribute(this.#list, 'aria-live', preference('log') ? 'polite' : 'off');
    this.#list.addEventListener('scroll', () => this.#scrolled(), { passive: true });
    new ResizeObserver(() => this.arrived()).observe(this.#list);
    this.element = h('div', { class: 'tb-log-frame' },
      h('div', { class: 'tb-log-tools' },
        h('label', { class: 'tb-check' }, this.#box, t('log.follow')),
        h('label', { class: 'tb-check' }, aloud, t('log.announce')),
        this.#earlier,
        h('a', { class: 'tb-link', href: address(`api/v1/tasks/${id}/logs/download`).href, download: true }, t('log.download'))),
      this.#fault, this.#empty, this.#list, this.#latest);
  }

  /** The seq of the last line that is shown; 0 for none. */
  get last() {
    return this.#last;
  }

  /** Reads the end of the log; what the socket brings meanwhile comes after it. */
  async start() {
    try {
      const { items, dropped } = await call('GET', `api/v1/tasks/${this.#id}/logs?before=${Number.MAX_SAFE_INTEGER}&limit=${FIRST}`);
      if (dropped > 0) {
        this.#missing = mark(t('log.dropped', { n: dropped }));
        this.#list.append(this.#missing);
      }
      this.#append([...items].sort((one, other) => one.seq - other.seq));
      this.#first = items.length > 0 ? Math.min(...items.map((line) => line.seq)) : 0;
      this.#offerEarlier(items.length === FIRST);
    } catch {
      setAttribute(this.#fault, 'hidden', false);
    }
    const early = this.#early;
    this.#early = null;
    for (const lines of early) this.#append(lines);
  }

  /** Shows the end; to be called when the element has come into the page, before which nothing can be scrolled. */
  arrived() {
    if (this.#following) this.#list.scrollTop = this.#list.scrollHeight;
  }

  /** Takes a log frame of the socket. */
  receive({ lines }) {
    setAttribute(this.#fault, 'hidden', true);
    if (this.#early) this.#early.push(lines);
    else this.#append(lines);
  }

  /** Puts the part before the first shown line in front of it, and keeps what the person looks at where it is. */
  async #showEarlier() {
    setAttribute(this.#earlier, 'disabled', true);
    try {
      const { items } = await call('GET', `api/v1/tasks/${this.#id}/logs?before=${this.#first}&limit=${EARLIER}`);
      this.#follow(false);
      const height = this.#list.scrollHeight;
      let last = 0;
      const nodes = [];
      for (const line of [...items].sort((one, other) => one.seq - other.seq)) {
        if (last > 0 && line.seq > last + 1) nodes.push(mark(t('log.gap', { n: line.seq - last - 1 })));
        nodes.push(lineElement(line));
        last = line.seq;
      }
      if (last > 0 && this.#first > last + 1) nodes.push(mark(t('log.gap', { n: this.#first - last - 1 })));
      if (this.#missing?.isConnected) this.#missing.after(...nodes);
      else this.#list.prepend(...nodes);
      this.#list.scrollTop += this.#list.scrollHeight - height;
      if (items.length > 0) this.#first = Math.min(...items.map((line) => line.seq));
      this.#offerEarlier(items.length === EARLIER);
    } catch {
      setAttribute(this.#fault, 'hidden', false);
    } finally {
      setAttribute(this.#earlier, 'disabled', false);
    }
  }

  /** There is more, and room for it in the document; beyond that the download has it all. */
  #offerEarlier(more) {
    this.#earlier.hidden = !more || this.#list.childElementCount + EARLIER > MOST;
  }

  #append(lines) {
    const fresh = lines.filter((line) => line.seq > this.#last);
    if (fresh.length === 0) return;
    const nodes = [];
    for (const line of fresh.slice(-MOST)) {
      if (this.#last > 0 && line.seq > this.#last + 1) nodes.push(mark(t('log.gap', { n: line.seq - this.#last - 1 })));
      nodes.push(lineElement(line));
      this.#last = line.seq;
    }
    this.#empty.hidden = true;
    this.#list.append(...nodes);
    this.#keepToTheMost();
    if (this.#following) this.#list.scrollTop = this.#list.scrollHeight;
    else this.#latest.hidden = false;
  }

  /** The oldest lines leave the document, and a mark stands for them; all of them are in the download. */
  #keepToTheMost() {
    if (this.#list.childElementCount <= MOST) return;
    this.#missing?.remove();
    this.#capped ??= mark(t('log.capped', { n: MOST }));
    this.#list.prepend(this.#capped);
    while (this.#list.childElementCount > MOST) this.#capped.nextElementSibling.remove();
    this.#first = Number(this.#list.querySelector('[data-seq]').dataset.seq);
    this.#offerEarlier(true);
  }

  /** Only who goes up leaves the end; a place that was made narrower has moved nobody. */
  #scrolled() {
    const { scrollTop, clientHeight, scrollHeight } = this.#list;
    const atEnd = scrollTop + clientHeight >= scrollHeight - NEAR_END_PX;
    const up = scrollTop < this.#top;
    this.#top = scrollTop;
    if (!atEnd && !up) return;
    this.#following = atEnd;
    this.#box.checked = atEnd;
    this.#latest.hidden = atEnd;
  }

  #follow(on) {
    this.#following = on;
    this.#box.checked = on;
    this.#latest.hidden = true;
    if (on) this.#list.scrollTop = this.#list.scrollHeight;
  }
}

function mark(text) {
  return h('div', { class: 'tb-log-mark' }, text);
}

/** One line: time, level as a coloured letter with its word for those who do not see it, text. */
export function lineElement({ at, level, message, seq }) {
  const word = level ?? 'info';
  const text = String(message).replace(CONTROL, '');
  return h('div', { class: 'tb-log-line', 'data-level': word, 'data-seq': seq },
    timeElement(at),
    h('abbr', { class: 'tb-log-level', title: word, 'aria-label': word }, word.charAt(0).toUpperCase()),
    h('span', { class: 'tb-log-text' }, text.length > LONGEST ? `${text.slice(0, LONGEST)} ${t('log.cut')}` : text));
}
