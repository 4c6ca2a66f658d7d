/**
 * The page of a business record: the rows of its tasks, and the chip of the newest one, kept true by the record's topic.
 *
 * Rows are taken over as the server wrote them; a task that is new for the record is put on top, one that is deleted goes.
 * The chip opens the center on its task where the task is the caller's own, and leads to its page everywhere else. Must
 * never show a task that no topic brought: what the caller may see is the server's to say.
 */
import { listenForActs } from './acts.js';
import { address } from './api.js';
import { pageData, setAttribute, setIcon, setText } from './dom.js';
import { makeRow, patchRow } from './row.js';
import { everySecond, serverNow } from './time.js';
import { describe, shortId } from './words.js';

/** Takes over the rows below `root`. */
export function startRecord(root, shared) {
  const { type, id, items } = pageData('tb-record');
  const { tasks, connection } = shared;
  const body = root.querySelector('[data-part="rows"]');
  const chip = root.querySelector('[data-part="chip"]');
  const rows = new Map([...body.querySelectorAll('[data-task]')].map((row) => [row.dataset.task, row]));
  const notes = new Map();
  const topic = `record:${type}:${id}`;
  const ours = ({ record }) => record?.type === type && record.id === id;
  // Only what is newer than the first row is new: the rest belongs to other pages, of which the newest has no cursor.
  const newest = !new URLSearchParams(location.search).has('cursor');
  const place = (task) => `${task.createdAt} ${task.id}`;
  const after = items[0] ? place(items[0]) : '';
  const belongs = (task) => rows.has(task.id) || (newest && place(task) > after);
  tasks.merge(items);
  connection.subscribe(topic);
  const paint = () => {
    const known = tasks.list().filter(ours);
    for (const task of known.filter(belongs).toReversed()) {
      if (!rows.has(task.id)) {
        rows.set(task.id, makeRow(task, serverNow()));
        body.prepend(rows.get(task.id));
      }
      patchRow(rows.get(task.id), task, serverNow(), { note: notes.get(task.id) ?? null });
    }
    setAttribute(root.querySelector('[data-part="empty"]'), 'hidden', rows.size > 0);
    if (newest && known[0]) patchChip(chip, known[0], serverNow());
    else if (rows.size === 0) setAttribute(chip, 'hidden', true);
  };
  connection.addEventListener('gone', ({ detail }) => {
    rows.get(detail.id)?.remove();
    rows.delete(detail.id);
    paint();
  });
  listenForActs(body, tasks, (element) => tasks.get(element.closest('[data-task]')?.dataset.task), (task, text) => {
    notes.set(task, text);
    paint();
  });
  chip.addEventListener('click', (event) => openCenter(event, chip, tasks.get(chip.dataset.opens), shared));
  tasks.subscribe(paint);
  everySecond(paint);
  paint();
}

/** State, share and id of the record's newest task. */
function patchChip(chip, task, now) {
  const says = describe(task, now);
  setAttribute(chip, 'hidden', false);
  setAttribute(chip, 'data-tone', says.tone);
  setAttribute(chip, 'data-opens', task.id);
  setAttribute(chip, 'href', address(`tasks/${task.id}#task`).href);
  setAttribute(chip, 'title', task.title);
  const [symbol, word, share, id] = chip.children;
  setIcon(symbol, says.icon);
  setText(word, says.word);
  setText(share, says.percent);
  setText(id, shortId(task.id));
}

/** The panel with the focus on the task, if the panel has it; else the way to its page. */
async function openCenter(event, chip, task, { user }) {
  const bell = document.querySelector('taskbell-bell');
  if (!bell?.show || task?.owner !== user || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  await bell.show(task.id);
  if (bell.shadowRoot.activeElement?.dataset.task !== task.id) location.assign(chip.href);
}
