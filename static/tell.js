/**
 * Says aloud, in toasts, and by the system what a person would want to hear: start, end, failure, quarters of the way.
 *
 * One polite status region per page, present from load; what comes within 10 s is merged into one announcement. Toasts are
 * for ends and needs of the tasks that this person started, at most three; a success stays 6 s, and longer under pointer or
 * focus; a failure stays until it is dismissed. What ended before the page was loaded is told by the list alone; what ended
 * while nobody looked, or nothing came through, is one sentence. Of several tabs one tells. Must never be the only place where
 * something is shown: each toast has its row in the list.
 */
import { address } from './api.js';
import { claim } from './claim.js';
import { h, icon, setText } from './dom.js';
import { percent, t } from './i18n.js';
import { notice, noticeState } from './notice.js';
import { preference } from './preferences.js';
import { serverNow } from './time.js';
import { describe, ended } from './words.js';

const MERGE_MS = 10_000;
const TOAST_MS = 6_000;
const MOST_TOASTS = 3;
/** What was missed is gathered for so long, for a return brings it in several parts. */
const GATHER_MS = 1_000;
/** A tab that is looked at goes first. */
const HIDDEN_WAITS_MS = 1_500;

/** Follows the store of a center and tells. */
export class Teller {
  #known = new Map();
  #region = document.getElementById('tb-status') ?? h('div', { class: 'tb-visually-hidden', role: 'status' });
  #toasts = h('section', { class: 'tb-toasts', 'aria-label': t('settings.notices') });
  #queue = [];
  #timer = 0;
  #toldAt = -MERGE_MS;
  #missed = new Map();
  #gather = 0;
  #since = serverNow();
  /** Whether what the store tells now came while nobody looked. */
  #unseen = document.hidden;

  constructor({ tasks, user, scope }) {
    this.tasks = tasks;
    this.user = user;
    this.scope = scope;
    if (!this.#region.isConnected) document.body.append(this.#region);
    document.body.append(this.#toasts);
    document.addEventListener('visibilitychange', () => this.#turn());
    tasks.subscribe((change) => this.#look(change));
  }

  /** The store holds back what comes fast: what came while nobody looked is told as that, however soon somebody comes back. */
  #turn() {
    if (!document.hidden) this.tasks.settle();
    this.#unseen = document.hidden;
    if (!this.#unseen && this.#missed.size > 0) this.#tellMissed();
  }

  #look({ replaced }) {
    for (const task of this.tasks.list()) {
      const before = this.#known.get(task.id);
      const now = { state: task.state, quarter: quarter(task), needs: needs(task) };
      this.#known.set(task.id, now);
      if ((task.startedBy ?? task.owner) !== this.user) continue;
      if (ended(task)) {
        if (before ? !ended(before) : this.#isNew(task.finishedAt)) this.#ended(task, replaced);
      } else if (now.needs && !(before?.needs ?? true)) {
        this.#tell(task, t('tell.attention', { title: task.title }));
      } else if (task.state === 'running' && (before ? before.state !== 'running' : this.#isNew(task.startedAt))) {
        this.say(t('tell.started', { title: task.title }));
      } else if (before && task.state === 'running' && now.quarter > before.quarter) {
        this.say(t('tell.percent', { title: task.title, percent: percent(task.progress.percent) }));
      }
    }
  }

  /** What happened before this page was there is no news. */
  #isNew(instant) {
    return Date.parse(instant ?? '') >= this.#since;
  }

  #ended(task, replaced) {
    if (task.state === 'cancelled' && task.stop?.actor === this.user) return;
    if (!this.#unseen && !replaced) return this.#tell(task, t(`tell.${task.state}`, { title: task.title }));
    this.#missed.set(task.id, task);
    if (this.#unseen) this.#notify(task);
    else this.#tellMissed();
  }

  async #tell(task, sentence) {
    this.say(sentence);
    if (document.hidden) return this.#notify(task);
    if (await this.#mayTell(task)) this.#toast(task);
  }

  /** Each end is told once, by whatever tab and in whatever way comes first. */
  #mayTell({ id, finishedAt, revision }) {
    return claim(this.scope, `${id}:${finishedAt ?? revision}`);
  }

  /** By the system, after a tab that is looked at had its chance. */
  #notify(task) {
    if (!preference('system') || noticeState() !== 'granted') return;
    const { word } = describe(task, serverNow());
    setTimeout(async () => {
      if (document.hidden && (await this.#mayTell(task))) notice(task, word);
    }, HIDDEN_WAITS_MS);
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

  /** Ends that nobody was told of are one sentence and one toast, however many they are. */
  #tellMissed() {
    this.#gather ||= setTimeout(async () => {
      this.#gather = 0;
      if (document.hidden) return;
      const gathered = [...this.#missed.values()];
      this.#missed.clear();
      const mine = await Promise.all(gathered.map((task) => this.#mayTell(task)));
      const missed = gathered.filter((_, at) => mine[at]);
      if (missed.length === 0) return;
      const title = t('tell.away', { n: missed.length });
      this.say(title);
      const failed = missed.some((task) => task.state === 'failed');
      const href = missed.length === 1 ? `tasks/${missed[0].id}` : 'notifications';
      this.#show({ tone: failed ? 'bad' : 'ok', symbol: failed ? 'failed' : 'inbox', href, title, text: missed.length === 1 ? missed[0].title : '', stays: failed });
    }, GATHER_MS);
  }

  #toast(task) {
    const { tone, icon: symbol, word, message } = describe(task, serverNow());
    const text = message ? `${word} · ${message}` : word;
    this.#show({ tone, symbol, href: `tasks/${task.id}`, title: task.title, text, stays: task.state !== 'succeeded' });
  }

  #show({ tone, symbol, href, title, text, stays }) {
    if (document.hidden || openPanel() || !preference('toasts')) return;
    const toast = h('div', { class: 'tb-toast', 'data-tone': tone, 'data-stays': stays },
      icon(symbol),
      h('div', { class: 'tb-toast-text' }, h('a', { href: address(href).href, title }, title), text),
      h('button', { class: 'tb-button', type: 'button', 'data-look': 'quiet', 'data-size': 'small', 'aria-label': t('tell.dismiss'), title: t('tell.dismiss'), onclick: () => toast.remove() }, icon('cancel')));
    this.#toasts.append(toast);
    while (this.#toasts.childElementCount > MOST_TOASTS) (this.#toasts.querySelector('.tb-toast:not([data-stays])') ?? this.#toasts.firstElementChild).remove();
    if (!stays) vanish(toast);
  }
}

function quarter(task) {
  return Math.floor((task.progress?.percent ?? 0) / 25);
}

/** It stands still until somebody does something about it; one that was paused on purpose does not count. */
function needs(task) {
  return task.waiting?.reason === 'no-handler' || task.waiting?.reason === 'pack-disabled';
}

/** While the panel is open its rows tell the same. */
function openPanel() {
  return document.querySelector('taskbell-bell')?.open ?? false;
}

/** Goes after its time, counted anew from when neither pointer nor focus is on it. */
function vanish(toast) {
  let timer = 0;
  const stay = () => clearTimeout(timer);
  const go = () => {
    stay();
    if (!toast.matches(':hover, :focus-within')) timer = setTimeout(() => toast.remove(), TOAST_MS);
  };
  for (const type of ['pointerenter', 'focusin']) toast.addEventListener(type, stay);
  for (const type of ['pointerleave', 'focusout']) toast.addEventListener(type, () => setTimeout(go));
  go();
}
