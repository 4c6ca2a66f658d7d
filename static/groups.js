/**
 * Rows in groups, kept still while a person reads.
 *
 * Needs attention, running, queued, finished today, earlier; more than five like tasks of one action fold into one batch
 * row. A known row is patched in place. A row moves to another group, and a new one appears, only while neither pointer
 * nor focus is in the list; until then new ones wait and are counted for the "N new" button. Must never re-sort rows
 * that are on the screen: within a group the order is by creation, which does not change.
 */
import { h, icon, setAttribute, setText } from './dom.js';
import { t } from './i18n.js';
import { makeRow, patchRow } from './row.js';
import { serverNow } from './time.js';
import { GROUPS, ended, groupOf } from './words.js';

const BATCH_FROM = 6;

export class Groups {
  #rows = new Map();
  #sections = new Map();
  #notes = new Map();
  #titleOf;
  #onWaiting;
  #heading;
  #pointerInside = false;
  #unplaced = null;
  #batches = new Map();

  /** `root` is emptied and filled with groups. `onWaiting(n)` hears how many new tasks wait to be let in; `heading` is the level below the one that stands above the list. */
  constructor(root, { titleOf = () => null, onWaiting = () => {}, heading = 'h3' } = {}) {
    this.root = root;
    this.#heading = heading;
    this.#titleOf = titleOf;
    this.#onWaiting = onWaiting;
    root.addEventListener('pointerenter', () => (this.#pointerInside = true));
    root.addEventListener('pointerleave', () => {
      this.#pointerInside = false;
      this.#freed();
    });
    root.addEventListener('keydown', (event) => this.page(event));
    root.addEventListener('focusout', () => queueMicrotask(() => this.#freed()));
  }

  /** The rows on the screen, by task id. */
  get rows() {
    return this.#rows;
  }

  /** A sentence on a row, in place of its message, until its task changes again. */
  note(id, text) {
    const row = this.#rows.get(id);
    if (!row) return;
    this.#notes.set(id, { text, revision: row.dataset.revision });
    setText(row.querySelector('[data-part="message"]'), text);
    setAttribute(row, 'data-note', true);
  }

  /** Patches what is on the screen; places what is new or has moved, unless someone is in the list. `force` always places. */
  show(tasks, now, force = false) {
    const wanted = new Map(tasks.map((task) => [task.id, task]));
    for (const [id, row] of this.#rows) {
      const task = wanted.get(id);
      if (task) patchRow(row, task, now, this.#options(id, task));
    }
    const fresh = tasks.filter((task) => !this.#rows.has(task.id));
    if (!force && this.#occupied()) {
      this.#unplaced = tasks;
      this.#onWaiting(fresh.length);
      this.#headings(tasks, now);
      return;
    }
    this.#unplaced = null;
    this.#onWaiting(0);
    this.#place(tasks, now);
  }

  /** Whether pointer or focus is in the list, so that nothing may move. */
  #occupied() {
    const root = this.root.getRootNode();
    return this.#rows.size > 0 && (this.#pointerInside || (root.activeElement && this.root.contains(root.activeElement)));
  }

  #freed() {
    if (this.#unplaced && !this.#occupied()) this.show(this.#unplaced, serverNow());
  }

  #options(id, task) {
    const note = this.#notes.get(id);
    if (note && note.revision !== String(task.revision)) this.#notes.delete(id);
    return { titleOf: this.#titleOf, note: this.#notes.get(id)?.text ?? null };
  }

  #place(tasks, now) {
    const wanted = new Set(tasks.map((task) => task.id));
    for (const [id, row] of this.#rows) {
      if (wanted.has(id)) continue;
      row.remove();
      this.#rows.delete(id);
    }
    const grouped = Map.groupBy(tasks, (task) => groupOf(task, now));
    for (const name of GROUPS) this.#fill(name, grouped.get(name) ?? [], now);
  }

  #fill(name, tasks, now) {
    const section = this.#section(name);
    setAttribute(section.element, 'hidden', tasks.length === 0);
    setText(section.count, String(tasks.length));
    const nodes = [];
    for (const part of folded(tasks)) {
      if (part.length < BATCH_FROM) nodes.push(...part.map((task) => this.#row(task, now)));
      else nodes.push(this.#batch(name, part, now));
    }
    arrange(section.list, nodes);
  }

  #row(task, now) {
    if (!this.#rows.has(task.id)) this.#rows.set(task.id, makeRow(task, now, this.#options(task.id, task)));
    return this.#rows.get(task.id);
  }

  #batch(group, tasks, now) {
    const key = `${group} ${tasks[0].action}`;
    if (!this.#batches.has(key)) {
      const batch = { title: h('strong', { class: 'tb-title' }), parts: h('span', { class: 'tb-count' }), rows: h('div') };
      batch.element = h('details', { class: 'tb-batch' }, h('summary', {}, icon('chevron'), batch.title, batch.parts), batch.rows);
      this.#batches.set(key, batch);
    }
    const { element, title, parts, rows } = this.#batches.get(key);
    const done = tasks.filter((task) => task.state === 'succeeded').length;
    const failed = tasks.filter((task) => task.state === 'failed').length;
    const running = tasks.filter((task) => !ended(task)).length;
    setText(title, t('batch.title', { title: tasks[0].title, n: tasks.length }));
    setText(parts, t('batch.parts', { done, failed, running }));
    arrange(rows, tasks.map((task) => this.#row(task, now)));
    return element;
  }

  #section(name) {
    if (!this.#sections.has(name)) {
      const count = h('span', { class: 'tb-group-count' });
      const list = h('div', { class: 'tb-rows', role: 'feed', 'aria-label': t(`group.${name}`) });
      const element = h('section', { class: 'tb-group', 'data-group': name, hidden: true },
        h(this.#heading, { class: 'tb-group-head' }, h('span', {}, t(`group.${name}`)), count), list);
      this.#sections.set(name, { element, count, list });
      const before = GROUPS.slice(GROUPS.indexOf(name) + 1).map((later) => this.#sections.get(later)?.element).find(Boolean);
      this.root.insertBefore(element, before ?? null);
    }
    return this.#sections.get(name);
  }

  #headings(tasks, now) {
    for (const [name, section] of this.#sections) {
      setText(section.count, String(tasks.filter((task) => groupOf(task, now) === name).length));
    }
  }

  /** Page Up and Page Down go from row to row, as in a feed. */
  page(event) {
    if (event.key !== 'PageDown' && event.key !== 'PageUp') return;
    const rows = [...this.root.querySelectorAll('.tb-row')].filter((row) => row.checkVisibility());
    const at = rows.findIndex((row) => row.contains(row.getRootNode().activeElement));
    const next = rows[event.key === 'PageDown' ? at + 1 : Math.max(0, at - 1)];
    if (!next) return;
    event.preventDefault();
    next.focus();
  }
}

/** Like tasks side by side: lists by action where there are enough of them, single tasks otherwise; the order is kept. */
function folded(tasks) {
  const byAction = Map.groupBy(tasks, (task) => task.action);
  const parts = [];
  for (const task of tasks) {
    const like = byAction.get(task.action);
    if (like.length < BATCH_FROM) parts.push([task]);
    else if (like[0] === task) parts.push(like);
  }
  return parts;
}

/** Makes `list` hold exactly `nodes` in this order and touches none that stands right already. */
function arrange(list, nodes) {
  let at = list.firstChild;
  for (const node of nodes) {
    if (node === at) at = at.nextSibling;
    else list.insertBefore(node, at);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}
