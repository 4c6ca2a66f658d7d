/**
 * The subtasks on the page of a task: the newest as rows, kept true.
 *
 * Those of the caller's own come with the caller's topic, new ones too. Those of somebody else are followed one by one while
 * they are under way, and the list is read again after changes of their parent, at most once in a while; never without one.
 */
import { listenForActs } from './acts.js';
import { call } from './api.js';
import { pageData, setAttribute, setText } from './dom.js';
import { number, t } from './i18n.js';
import { followOthers } from './list.js';
import { makeRow, patchRow } from './row.js';
import { serverNow } from './time.js';
import { newestFirst } from './tasks.js';

/** Rows of the section, as the server writes them. */
const ROWS = 50;
/** Between two readings of somebody else's. */
const APART_MS = 3_000;

/** Takes over the section of a task's page; `paint` brings it to what is known, `changed` tells of its parent. */
export function startChildren(part, parent, shared) {
  const { tasks, user } = shared;
  const own = parent.owner === user;
  const stored = pageData('tb-children');
  const body = part['children-rows'];
  const rows = new Map([...body.querySelectorAll('[data-task]')].map((row) => [row.dataset.task, row]));
  const known = new Map();
  const notes = new Map();
  let { more } = stored;
  let timer = null;
  let revision = parent.revision;

  const take = (items) => {
    for (const task of items) known.set(task.id, task);
    tasks.merge(items);
    if (!own) followOthers(shared, items);
  };
  const paint = () => {
    for (const task of tasks.list()) if (task.parent === parent.id) known.set(task.id, task);
    const all = [...known.values()].sort(newestFirst);
    more ||= all.length > ROWS;
    const shown = all.slice(0, ROWS);
    shown.forEach((task, at) => {
      if (!rows.has(task.id)) rows.set(task.id, makeRow(task, serverNow()));
      const row = rows.get(task.id);
      if (body.children[at] !== row) body.insertBefore(row, body.children[at] ?? null);
      patchRow(row, task, serverNow(), { titleOf: (id) => tasks.get(id)?.title, note: notes.get(task.id) ?? null });
    });
    while (body.childElementCount > shown.length) body.lastElementChild.remove();
    setAttribute(part.children, 'hidden', shown.length === 0);
    setText(part['children-count'], more ? t('group.more', { n: shown.length }) : number(shown.length));
  };
  const read = async () => {
    const page = await call('GET', `api/v1/tasks?parent=${parent.id}&limit=${ROWS}${own ? '' : '&scope=tenant'}`).catch(() => null);
    if (!page) return;
    more = page.next !== null;
    take(page.items);
    paint();
  };
  const changed = (task) => {
    if (own || task.revision === revision) return;
    revision = task.revision;
    timer ??= setTimeout(() => {
      timer = null;
      read();
    }, APART_MS);
  };
  shared.connection.addEventListener('gone', ({ detail }) => {
    if (!known.delete(detail.id)) return;
    rows.delete(detail.id);
    paint();
  });
  listenForActs(body, tasks, (element) => known.get(element.closest('[data-task]')?.dataset.task), (id, text) => {
    notes.set(id, text);
    paint();
  });
  take(stored.items);
  return { paint, read, changed };
}
