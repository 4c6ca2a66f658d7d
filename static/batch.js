/**
 * Batches: many like tasks in one row.
 *
 * Like are tasks of one action that were made in one go: each within ten minutes of the next one. More than five of them
 * fold into one row that tells how many are done, failed and running, and unfolds into their rows. The server folds by the
 * same rule (src/web/pages/fold.rs). Must never hide what needs a person: a batch stands in the group of its member
 * that has come first in the order of the groups.
 */
import { h, icon, setAttribute, setText } from './dom.js';
import { t } from './i18n.js';
import { GROUPS, ended, groupOf } from './words.js';

const FOLD_FROM = 6;
const APART_MS = 600_000;

/** Tasks, newest first, as parts `{key, tasks, group}`: single ones have no key. In the order of their newest members. */
export function folded(tasks, now) {
  const last = new Map();
  const goOf = new Map();
  for (const task of tasks) {
    let go = last.get(task.action);
    if (!go || Date.parse(go.at(-1).createdAt) - Date.parse(task.createdAt) > APART_MS) last.set(task.action, (go = []));
    go.push(task);
    goOf.set(task, go);
  }
  const parts = [];
  for (const task of tasks) {
    const go = goOf.get(task);
    if (go.length < FOLD_FROM) parts.push({ key: null, tasks: [task], group: groupOf(task, now) });
    else if (go[0] === task) parts.push({ key: `${task.action} ${go.at(-1).id}`, tasks: go, group: GROUPS.find((group) => go.some((each) => groupOf(each, now) === group)) });
  }
  return parts;
}

/** A new batch row, folded. */
export function makeBatch(key) {
  return h('details', { class: 'tb-batch', 'data-batch': key },
    h('summary', {}, icon('chevron'),
      h('strong', { class: 'tb-title', 'data-batch-part': 'title' }),
      h('span', { class: 'tb-unread', 'data-batch-part': 'unread', hidden: true }),
      h('span', { class: 'tb-count', 'data-batch-part': 'parts' }),
      h('progress', { class: 'tb-bar', 'data-batch-part': 'bar', 'data-bar': 'value', max: '100' })),
    h('div', { class: 'tb-batch-rows', 'data-batch-part': 'rows' }));
}

/** The place of a batch's rows. */
export function batchRows(batch) {
  return batch.querySelector('[data-batch-part="rows"]');
}

/** Brings a batch row to what its tasks say now. */
export function patchBatch(batch, tasks) {
  const part = (name) => batch.querySelector(`[data-batch-part="${name}"]`);
  const title = t('batch.title', { title: tasks[0].title, n: tasks.length });
  setText(part('title'), title);
  setAttribute(part('title'), 'title', title);
  setText(part('parts'), partsOf(tasks));
  setAttribute(part('unread'), 'hidden', !tasks.some((task) => ended(task) && task.read === false));
  const over = tasks.filter(ended).length;
  setAttribute(part('bar'), 'value', Math.floor((100 * over) / tasks.length));
  setAttribute(part('bar'), 'hidden', over === tasks.length);
  setAttribute(part('bar'), 'aria-label', title);
}

/** "5 done, 1 failed, 2 running", and what is neither of them. */
function partsOf(tasks) {
  const n = { done: 0, failed: 0, running: 0, queued: 0, paused: 0, cancelled: 0 };
  const names = { succeeded: 'done', failed: 'failed', queued: 'queued', blocked: 'queued', paused: 'paused', cancelled: 'cancelled' };
  for (const task of tasks) n[names[task.state] ?? 'running'] += 1;
  const said = [t('batch.parts', n), ...['queued', 'paused', 'cancelled'].filter((name) => n[name] > 0).map((name) => t(`batch.${name}`, { n: n[name] }))];
  return said.join(t('batch.and'));
}
