/**
 * Says aloud, and in toasts, what a person would want to hear: start, end, failure and quarters of the way.
 *
 * One polite status region per page, present from load; what comes within 10 s is merged into one announcement. Toasts
 * are for ends of the own tasks only, at most three; a success stays 6 s and longer under pointer or focus, a failure
 * stays until it is dismissed. Nothing that ended before the page was loaded, or while it was away, is told one by one:
 * that is one sentence. Only one tab shows a toast. Must never be the only place where something is shown: each toast
 * has its row in the list.
 */
import { address } from './api.js';
import { h, icon, setText } from './dom.js';
import { percent, t } from './i18n.js';
import { describe, ended } from './words.js';
import { serverNow } from './time.js';

const MERGE_MS = 10_000;
const TOAST_MS = 6_000;
const MOST_TOASTS = 3;

/** Follows the store and tells. `user` is who looks: only own tasks are told. */
export class Teller {
  #known = new Map();
  #region = document.getElementById('tb-status') ?? h('div', { class: 'tb-visually-hidden', role: 'status' });
  #toasts = h('div', { class: 'tb-toasts' });
  #queue = [];
  #timer = 0;
  #toldAt = -MERGE_MS;
  #first = true;

  constructor(tasks, { user = null } = {}) {
    this.tasks = tasks;
    this.user = user;
    if (!this.#region.isConnected) document.body.append(this.#region);
    document.body.append(this.#toasts);
    tasks.subscribe((change) => this.#look(change));
  }

  #look({ replaced }) {
    const endings = [];
    for (const task of this.tasks.list()) {
      const before = this.#known.get(task.id);
      this.#known.set(task.id, { state: task.state, quarter: quarter(task) });
      if (this.#first || (this.user && task.owner !== this.user)) continue;
      if (ended(task) && before?.state !== task.state && (before || !replaced)) endings.push(task);
      else if (task.state === 'running' && before?.state !== 'running') this.say(t('tell.started', { title: task.title }));
      else if (before && task.state === 'running' && quarter(task) > before.quarter) {
        this.say(t('tell.percent', { title: task.title, percent: percent(task.progress.percent) }));
      }
    }
    this.#first = false;
    if (replaced && endings.length > 1) return this.#tellAway(endings.length);
    for (const task of endings) {
      this.say(t(`tell.${task.state}`, { title: task.title }));
      alone(`${task.id}:${task.revision}`, () => this.#toast(task));
    }
  }

  /** Says a sentence at the next chance. */
  say(text) {
    this.#queue.push(text);
    const wait = Math.max(0, MERGE_MS - (performance.now() - this.#toldAt));
    this.#timer ||= setTimeout(() => {
      this.#timer = 0;
      this.#toldAt = performance.now();
      setText(this.#region, this.#queue.splice(0).join('. '));
    }, wait);
  }

  /** Many ends at once, after an absence, are one sentence and one toast. */
  #tellAway(n) {
    this.say(t('tell.away', { n }));
    alone('away', () => this.#show({ tone: 'ok', symbol: 'inbox', href: 'notifications', title: t('tell.away', { n }), text: '', stays: false }));
  }

  #toast(task) {
    if (task.state === 'cancelled') return;
    const { tone, icon: symbol, word, message } = describe(task, serverNow());
    const text = message ? `${word} · ${message}` : word;
    this.#show({ tone, symbol, href: `tasks/${task.id}`, title: task.title, text, stays: task.state !== 'succeeded' });
  }

  #show({ tone, symbol, href, title, text, stays }) {
    if (document.hidden || openPanel()) return;
    const toast = h('div', { class: 'tb-toast', 'data-tone': tone },
      icon(symbol),
      h('div', { class: 'tb-toast-text' }, h('a', { href: address(href).href }, title), text),
      h('button', { class: 'tb-button', type: 'button', 'data-look': 'quiet', 'data-size': 'small', 'aria-label': t('tell.dismiss'), onclick: () => toast.remove() }, icon('cancel')));
    this.#toasts.append(toast);
    while (this.#toasts.childElementCount > MOST_TOASTS) this.#toasts.firstElementChild.remove();
    if (!stays) vanish(toast);
  }
}

/** Of several visible tabs the first one to come acts; where there are no locks, each. */
function alone(what, act) {
  if (document.hidden) return;
  if (!navigator.locks) return act();
  navigator.locks.request(`taskbell:toast:${what}`, { ifAvailable: true }, (lock) => {
    if (!lock) return undefined;
    act();
    return new Promise((done) => setTimeout(done, TOAST_MS));
  });
}

function quarter(task) {
  return Math.floor((task.progress?.percent ?? 0) / 25);
}

/** While the panel is open its rows tell the same. */
function openPanel() {
  return document.querySelector('taskbell-bell')?.open ?? false;
}

function vanish(toast) {
  let timer = 0;
  const go = () => (timer = setTimeout(() => toast.remove(), TOAST_MS));
  for (const type of ['pointerenter', 'focusin']) toast.addEventListener(type, () => clearTimeout(timer));
  for (const type of ['pointerleave', 'focusout']) toast.addEventListener(type, go);
  go();
}
