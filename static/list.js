/**
 * The list page: the page that the server wrote, kept true.
 *
 * Filters and paging are links and a form, and live in the address; this only patches the rows that are there and lets
 * new ones in. On the first page without a filter new tasks are put into their groups at once, or wait behind "N new"
 * while someone is in the list; under a filter the offer is a reload of the same address. Must never fetch the list.
 */
import { listenForActs } from './acts.js';
import { h, setAttribute, setText } from './dom.js';
import { Groups } from './groups.js';
import { number, t } from './i18n.js';
import { liveIndicator } from './live.js';
import { patchRow } from './row.js';
import { everySecond, serverNow, setTime } from './time.js';
import { ended } from './words.js';

/** A connection has 32 topics; some are left for the rest of the page. */
const MOST_TOPICS = 20;
const ENDED_ROWS = new Set(['succeeded', 'failed', 'cancelled']);

/** Takes over the list below `root`. */
export function startList(root, shared) {
  const body = root.querySelector('[data-part="rows"]');
  const live = root.querySelector('[data-part="live"]');
  live?.replaceChildren(liveIndicator(shared.connection));
  listenForRead(body, shared);
  startMarkAll(root, body, shared);
  startChips(root, shared);
  const grouped = root.dataset.first === 'true' && root.dataset.filtered === 'false';
  if (grouped) startGrouped(body, shared);
  else startRows(body, shared);
  const updated = root.querySelector('[data-part="updated"]');
  const refresh = root.querySelector('[data-part="refresh"]');
  refresh?.addEventListener('click', async (event) => {
    if (!grouped) return;
    event.preventDefault();
    refresh.setAttribute('data-pending', '');
    await shared.connection.refresh().catch(() => {});
    refresh.removeAttribute('data-pending');
  });
  everySecond(() => updated && shared.connection.trueAt && setTime(updated, shared.connection.trueAt));
  root.querySelector('form[data-filters]')?.addEventListener('change', (event) => event.currentTarget.requestSubmit());
}

/** The owner's own list: the snapshot first, and below it what the server wrote beyond it. */
function startGrouped(body, shared) {
  const { tasks } = shared;
  const bar = h('div', { class: 'tb-fresh', hidden: true });
  const fresh = h('button', { class: 'tb-button', type: 'button', 'data-size': 'small', 'data-look': 'primary' });
  bar.append(fresh);
  body.before(bar);
  let groups = null;
  const known = new Map();
  const paint = (force) => {
    if (tasks.counts === null) return;
    groups ??= takeOver(body, shared, (n) => {
      setAttribute(bar, 'hidden', n === 0);
      setText(fresh, t('bell.fresh', { n }));
    });
    for (const task of tasks.list()) known.set(task.id, task);
    for (const id of known.keys()) if (!tasks.get(id) && !tasks.more) known.delete(id);
    groups.show([...known.values()].filter((task) => !task.archived).sort((a, b) => (a.createdAt < b.createdAt ? 1 : -1)), serverNow(), force);
  };
  fresh.addEventListener('click', () => paint(true));
  tasks.subscribe(() => paint(false));
  everySecond(() => paint(false));
}

function takeOver(body, shared, onWaiting) {
  body.replaceChildren();
  const groups = new Groups(body, { titleOf: (id) => shared.tasks.get(id)?.title, onWaiting, heading: 'h2' });
  listenForActs(body, shared.tasks, (element) => shared.tasks.get(element.closest('[data-task]')?.dataset.task), (id, text) => groups.note(id, text));
  return groups;
}

/** A filtered or later page: the rows stay where they are and are patched. */
function startRows(body, shared) {
  const { tasks } = shared;
  const rows = new Map([...body.querySelectorAll('[data-task]')].map((row) => [row.dataset.task, row]));
  const notes = new Map();
  const paint = () => {
    for (const [id, row] of rows) {
      const task = tasks.get(id);
      if (task) patchRow(row, task, serverNow(), { note: notes.get(id) ?? null });
    }
  };
  listenForActs(body, tasks, (element) => tasks.get(element.closest('[data-task]')?.dataset.task), (id, text) => {
    notes.set(id, text);
    paint();
  });
  tasks.subscribe(paint);
  everySecond(paint);
  followOthers(shared, [...rows.values()].filter((row) => !ENDED_ROWS.has(row.dataset.state)).map((row) => ({ id: row.dataset.task })));
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

/** Marks the rows that the button names, and no more. */
function startMarkAll(root, body, shared) {
  const form = root.querySelector('form[data-mark-read]');
  const button = form.querySelector('button');
  const unread = () => [...body.querySelectorAll('[data-task]')].map((row) => shared.tasks.get(row.dataset.task)).filter((task) => task && ended(task) && task.read === false);
  shared.tasks.subscribe(() => {
    const n = unread().length;
    setAttribute(form, 'hidden', n === 0);
    setText(button.lastElementChild, t('list.mark_read', { n }));
  });
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    button.setAttribute('data-pending', '');
    await shared.mark('read', unread().map((task) => task.id)).catch(() => {});
    button.removeAttribute('data-pending');
  });
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
