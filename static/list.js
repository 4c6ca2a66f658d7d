/**
 * The list page: the page that the server wrote, kept true.
 *
 * Filters and paging are links and a form, and live in the address; rows are taken over as they stand, patched, and moved
 * between their groups while nobody is in the list. On the first page without a filter new tasks are let in, or wait
 * behind "N new" while someone is in the list; on any other page the offer is the same address, read again. "Mark all
 * read" names how many it touches: those that are known here, and those that the server counted beyond them. Must never
 * fetch the list.
 */
import { listenForActs } from './acts.js';
import { adopted } from './adopt.js';
import { call } from './api.js';
import { h, pageData, setAttribute, setText } from './dom.js';
import { Groups } from './groups.js';
import { number, t } from './i18n.js';
import { liveIndicator } from './live.js';
import { newestFirst } from './tasks.js';
import { everySecond, serverNow, setTime } from './time.js';
import { ended } from './words.js';

/** A connection has 32 topics; some are left for the rest of the page. */
const MOST_TOPICS = 20;

/** Takes over the list below `root`. */
export function startList(root, shared) {
  new List(root, shared).start();
}

class List {
  #root;
  #shared;
  #body;
  #groups;
  #items;
  #more;
  /** Whether tasks that are new come in by themselves: the first page, without a filter. */
  #open;
  #filter;
  #startedAt = serverNow();

  constructor(root, shared) {
    this.#root = root;
    this.#shared = shared;
    this.#body = root.querySelector('[data-part="rows"]');
    const { items, more } = pageData('tb-list');
    this.#items = new Map(items.map((task) => [task.id, task]));
    this.#more = more;
    this.#open = root.dataset.first === 'true' && root.dataset.filtered === 'false';
    this.#filter = new URLSearchParams(location.search);
  }

  start() {
    const { tasks, connection } = this.#shared;
    const fresh = freshBar(this.#body);
    fresh.button.addEventListener('click', () => (this.#open ? this.#paint({ force: true }) : location.reload()));
    this.#groups = new Groups(this.#body, { titleOf: (id) => tasks.get(id)?.title, heading: 'h2', from: adopted(this.#body), onWaiting: (n) => this.#open && fresh.show(n) });
    const taskOf = (element) => tasks.get(element.closest('[data-task]')?.dataset.task);
    listenForActs(this.#body, tasks, taskOf, (id, text) => {
      this.#groups.note(id, text);
      this.#shared.say?.(text);
    });
    listenForRead(this.#body, this.#shared);
    tasks.merge([...this.#items.values()]);
    startMarkAll(this.#root, this.#shared, () => this.#unread());
    startChips(this.#root, this.#shared);
    startTools(this.#root, this.#shared, this.#open);
    followOthers(this.#shared, [...this.#items.values()].filter((task) => task.owner !== this.#shared.user));
    tasks.subscribe((change) => {
      this.#paint({ change });
      if (!this.#open) fresh.show(this.#elsewhere().length);
    });
    this.#paint({});
  }

  #paint({ force = false, change = null }) {
    const { tasks } = this.#shared;
    const shown = this.#shown();
    const ids = change && !change.replaced && !change.aged ? change.ids : null;
    this.#groups.show(shown, serverNow(), { force, ids, more: this.#more || (this.#open && tasks.more) });
    const empty = this.#body.querySelector(':scope > .tb-empty');
    if (empty) setAttribute(empty, 'hidden', shown.length > 0);
  }

  /** The page's own tasks, and on an open page what is under way or newer than its end. */
  #shown() {
    const { tasks } = this.#shared;
    const shown = new Map();
    for (const id of this.#items.keys()) if (tasks.get(id)) shown.set(id, tasks.get(id));
    if (this.#open) {
      const end = this.#more ? [...this.#items.values()].filter(ended).sort(newestFirst).at(-1) : null;
      for (const task of tasks.mine()) if (!end || !ended(task) || newestFirst(task, end) <= 0) shown.set(task.id, task);
    }
    return [...shown.values()].filter((task) => !task.archived).sort(newestFirst);
  }

  /** Own tasks that were made since the page was read and fit its filter, but are not on it. */
  #elsewhere() {
    return this.#shared.tasks.mine().filter((task) => !this.#items.has(task.id) && Date.parse(task.createdAt) > this.#startedAt && this.#fits(task));
  }

  #fits(task) {
    const wanted = (key) => this.#filter.get(key) ?? '';
    const text = wanted('q').toLowerCase();
    const record = task.record ? `${task.record.type}:${task.record.id}` : '';
    return (!wanted('state') || wanted('state') === task.state)
      && (!wanted('action') || wanted('action') === task.action)
      && (!wanted('record') || wanted('record') === record)
      && (!text || [task.title, task.action, task.id, task.record?.id ?? ''].some((part) => part.toLowerCase().includes(text)));
  }

  /** Own ends on this page, or let in to it, that were not read. */
  #unread() {
    return [...this.#shown(), ...(this.#open ? [] : this.#elsewhere())].filter((task) => ended(task) && task.read === false && task.owner === this.#shared.user);
  }
}

/** "N new", above the rows without moving them. */
function freshBar(body) {
  const button = h('button', { class: 'tb-button', type: 'button', 'data-size': 'small', 'data-look': 'primary' });
  const bar = h('div', { class: 'tb-fresh', 'data-over': 'page', hidden: true }, button);
  body.before(bar);
  const show = (n) => {
    setAttribute(bar, 'hidden', n === 0);
    setText(button, t('bell.fresh', { n }));
  };
  return { button, show };
}

/** Follows open tasks by their own topics: those of others are not in the caller's own snapshot. */
export function followOthers({ connection }, open) {
  const unfinished = open.filter((task) => !task.finishedAt).slice(0, MOST_TOPICS);
  for (const task of unfinished) connection.subscribe(`task:${task.id}`);
}

function listenForRead(body, shared) {
  body.addEventListener('click', (event) => {
    const id = event.target.closest?.('a[data-part="title"]')?.closest('[data-task]')?.dataset.task;
    const task = id && shared.tasks.get(id);
    if (task && ended(task) && task.read === false) shared.mark('read', [id]).catch(() => {});
  });
}

/** Live indicator, the instant up to which the page is true, and refresh. */
function startTools(root, { connection }, open) {
  root.querySelector('[data-part="live"]')?.replaceChildren(liveIndicator(connection));
  const updated = root.querySelector('[data-part="updated"]');
  const refresh = root.querySelector('[data-part="refresh"]');
  refresh?.addEventListener('click', async (event) => {
    if (!open) return;
    event.preventDefault();
    refresh.setAttribute('data-pending', '');
    await connection.refresh().catch(() => {});
    refresh.removeAttribute('data-pending');
  });
  everySecond(() => updated && connection.trueAt && setTime(updated, connection.trueAt));
  root.querySelector('form[data-filters]')?.addEventListener('change', (event) => event.currentTarget.requestSubmit());
}

/** Marks what the button names: what `unread` gives, and what the server counted beyond this page, under the same filter. */
function startMarkAll(root, shared, unread) {
  const form = root.querySelector('form[data-mark-read]');
  const button = form.querySelector('button');
  const filter = JSON.parse(form.dataset.filter);
  let beyond = Number(form.dataset.beyond);
  const paint = () => {
    const n = beyond + unread().length;
    setAttribute(form, 'hidden', n === 0);
    setText(button.lastElementChild, t('list.mark_read', { n }));
  };
  shared.tasks.subscribe(paint);
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    button.setAttribute('data-pending', '');
    try {
      const upTo = Math.max(shared.connection.head, Number(form.elements.upTo.value));
      const n = beyond > 0 ? await markBeyond(shared, { upTo, filter }, unread()) : await markHere(shared, unread());
      beyond = 0;
      shared.say?.(t('list.marked', { n }));
    } catch (problem) {
      shared.say?.(problem.message);
    }
    button.removeAttribute('data-pending');
    paint();
  });
}

async function markHere(shared, tasks) {
  await shared.mark('read', tasks.map((task) => task.id));
  return tasks.length;
}

async function markBeyond(shared, named, tasks) {
  const { changed } = await call('POST', 'api/v1/notifications/read', named);
  shared.tasks.mark(tasks.map((task) => task.id), 'read');
  return changed;
}

/** The numbers on the states: what the server counted last; a number that it did not count again is taken away. */
function startChips(root, shared) {
  const chips = [...root.querySelectorAll('.chips a[data-state]')].filter((chip) => chip.dataset.state);
  const states = new Map();
  shared.tasks.subscribe(({ ids }) => {
    const { counts } = shared.tasks;
    const moved = [...ids].some((id) => states.has(id) && states.get(id) !== shared.tasks.get(id)?.state);
    for (const task of shared.tasks.list()) states.set(task.id, task.state);
    for (const chip of chips) {
      const figure = chip.querySelector('b');
      const count = counts?.[chip.dataset.state];
      if (count !== undefined) setText(figure, number(count));
      else if (moved) setText(figure, '');
    }
  });
}
