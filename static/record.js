/**
 * The page of a business record: the rows of its tasks, kept true by the topics of the record and of its open tasks.
 *
 * Rows are taken over as the server wrote them; a task that is new for the record is put on top. Must never show a task
 * that no topic brought: what the caller may see is the server's to say.
 */
import { listenForActs } from './acts.js';
import { pageData } from './dom.js';
import { makeRow, patchRow } from './row.js';
import { followOthers } from './list.js';
import { everySecond, serverNow } from './time.js';

/** Takes over the rows below `root`. */
export function startRecord(root, shared) {
  const { type, id, items } = pageData('tb-record');
  const { tasks, connection } = shared;
  const body = root.querySelector('[data-part="rows"]');
  const rows = new Map([...body.querySelectorAll('[data-task]')].map((row) => [row.dataset.task, row]));
  const notes = new Map();
  tasks.merge(items);
  connection.subscribe(`record:${type}:${id}`);
  followOthers(shared, items);
  const paint = () => {
    for (const task of tasks.list().filter(({ record }) => record?.type === type && record.id === id).reverse()) {
      if (!rows.has(task.id)) {
        rows.set(task.id, makeRow(task, serverNow()));
        body.prepend(rows.get(task.id));
        root.querySelector('[data-part="empty"]')?.setAttribute('hidden', '');
      }
      patchRow(rows.get(task.id), task, serverNow(), { note: notes.get(task.id) ?? null });
    }
  };
  listenForActs(body, tasks, (element) => tasks.get(element.closest('[data-task]')?.dataset.task), (task, text) => {
    notes.set(task, text);
    paint();
  });
  tasks.subscribe(paint);
  everySecond(paint);
  paint();
}
