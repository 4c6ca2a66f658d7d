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
import { t } from './i18n.js';
import { liveIndicator } from './live.js';
import { patchRow } from './row.js';
import { everySecond, serverNow, setTime } from './time.js';
import { ended } from './words.js';

/** Takes over the list below `root`. */
export function startList(root, shared) {
  const body = root.querySelector('[data-part="rows"]');
  const live = root.querySelector('[data-part="live"]');
  live?.replaceChildren(liveIndicator(shared.connection));
  listenForRead(body, shared);
  startMarkAll(root, shared);
  if (root.dataset.first === 'true' && root.dataset.filtered === 'false') startGrouped(root, body, shared);
  else startRows(root, body, shared);
  const updated = root.querySelector('[data-part="updated"]');
  const refresh = root.querySelector('[data-part="refresh"]');
  refresh?.addEventListener('click', async (event) => {
    event.preventDefault();
    refresh.setAttribute('data-pending', '');
    await shared.connection.refresh().catch(() => {});
    refresh.removeAttribute('data-pending');
  });
  everySecond(() => updated && shared.connection.trueAt && setTime(updated, shared.connection.trueAt));
  root.querySelector('form[data-filters]')?.addEventListener('change', (event) => event.currentTarget.requestSubmit());
}

/** The owner's own list: the snapshot first, and below it what the server wrote beyond it. */
function startGrouped(root, body, shared) {
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
  const groups = new Groups(body, { titleOf: (id) => shared.tasks.get(id)?.title, onWaiting });
  listenForActs(body, shared.tasks, (element) => shared.tasks.get(element.closest('[data-task]')?.dataset.task), (id, text) => groups.note(id, text));
  return groups;
}

/** A filtered or later page: the rows stay where they are and are patched. */
function startRows(root, body, shared) {
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
}

function listenForRead(body, shared) {
  body.addEventListener('click', (event) => {
    const id = event.target.closest?.('a[data-part="title"]')?.closest('[data-task]')?.dataset.task;
    const task = id && shared.tasks.get(id);
    if (task && ended(task) && task.read === false) shared.mark('read', [id]).catch(() => {});
  });
}

/** Marks the rows that the button named, and no more. */
function startMarkAll(root, shared) {
  const button = root.querySelector('[data-part="mark-read"]');
  button?.addEventListener('click', async (event) => {
    event.preventDefault();
    const ids = button.form.elements.ids.value.split(',');
    button.setAttribute('data-pending', '');
    const done = await shared.mark('read', ids).then(() => true, () => false);
    button.removeAttribute('data-pending');
    if (done) button.form.hidden = true;
  });
}
