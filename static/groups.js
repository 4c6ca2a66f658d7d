/**
 * Rows in groups, kept still while a person reads.
 *
 * Needs attention, running, queued, finished today, earlier; like tasks fold into batches (batch.js). A known row is
 * patched in place. A row moves to another group, a new one appears and an old one goes only while neither pointer nor
 * focus is in the list; until then new ones wait and are counted for the "N new" button, and what is gone says so in its
 * place. Must never re-sort rows that are on the screen: within
 * a group the order is by creation, which does not change.
 */
import { batchRows, folded, makeBatch, patchBatch } from './batch.js';
import { h, setAttribute, setText } from './dom.js';
import { number, t } from './i18n.js';
import { makeRow, patchRow } from './row.js';
import { serverNow } from './time.js';
import { GROUPS } from './words.js';

/** How long an explanation stays on a row at least. */
const NOTE_MS = 8_000;

export class Groups {
  #rows;
  #sections;
  #batches;
  #batchOf;
  #notes = new Map();
  #titleOf;
  #onWaiting;
  #heading;
  #pointerInside = false;
  #unplaced = null;

  /**
   * `root` holds the groups. `onWaiting(n)` hears how many new tasks wait to be let in; `heading` is the
   * tag of a group's; `from` is what the server wrote there (adopt.js).
   */
  constructor(root, { titleOf = () => null, onWaiting = () => {}, heading = 'h3', from = {} } = {}) {
    this.root = root;
    this.#rows = from.rows ?? new Map();
    this.#sections = from.sections ?? new Map();
    this.#batches = from.batches ?? new Map();
    this.#batchOf = from.batchOf ?? new Map();
    this.#titleOf = titleOf;
    this.#onWaiting = onWaiting;
    this.#heading = heading;
    root.addEventListener('pointerenter', () => (this.#pointerInside = true));
    root.addEventListener('pointerleave', () => this.leave());
    root.addEventListener('keydown', (event) => this.page(event));
    root.addEventListener('focusout', () => queueMicrotask(() => this.#freed()));
  }

  /** The rows on the screen, by task id. */
  get rows() {
    return this.#rows;
  }

  /** The pointer is not in the list any more, or nobody sees it. */
  leave() {
    this.#pointerInside = false;
    this.#freed();
  }

  /** A sentence on a row in place of its message: the answer to what a person just tried. */
  note(id, text) {
    const row = this.#rows.get(id);
    if (!row) return;
    this.#notes.set(id, { text, until: performance.now() + NOTE_MS });
    setText(row.querySelector('[data-part="message"]'), text);
    setAttribute(row, 'data-note', true);
  }

  /**
   * Patches what is on the screen, or with `ids` only these; places what is new or has moved, unless someone is in the
   * list. `force` always places. With `more` the ended groups go on beyond what is here.
   */
  show(tasks, now, { force = false, ids = null, more = false } = {}) {
    const wanted = new Map(tasks.map((task) => [task.id, task]));
    for (const id of ids ?? this.#rows.keys()) {
      const [row, task] = [this.#rows.get(id), wanted.get(id)];
      if (row && task) {
        setAttribute(row, 'data-gone', false);
        patchRow(row, task, now, this.#options(id));
      } else if (row) sayGone(row);
    }
    this.#patchBatches(wanted);
    if (!force && this.#occupied()) {
      this.#unplaced = { tasks, more };
      this.#onWaiting(tasks.filter((task) => !this.#rows.has(task.id)).length);
      return;
    }
    this.#unplaced = null;
    this.#onWaiting(0);
    this.#place(tasks, now, more);
  }

  /** Whether pointer or focus is in the list, so that nothing may move. */
  #occupied() {
    const root = this.root.getRootNode();
    return this.#rows.size > 0 && (this.#pointerInside || (root.activeElement && this.root.contains(root.activeElement)));
  }

  #freed() {
    if (this.#unplaced && !this.#occupied()) this.show(this.#unplaced.tasks, serverNow(), { more: this.#unplaced.more });
  }

  #options(id) {
    const note = this.#notes.get(id);
    if (note && performance.now() > note.until) this.#notes.delete(id);
    return { titleOf: this.#titleOf, note: this.#notes.get(id)?.text ?? null };
  }

  #place(tasks, now, more) {
    const wanted = new Set(tasks.map((task) => task.id));
    for (const [id, row] of this.#rows) {
      if (wanted.has(id)) continue;
      row.remove();
      this.#rows.delete(id);
    }
    this.#batchOf.clear();
    const grouped = Map.groupBy(folded(tasks, now), (part) => part.group);
    for (const name of GROUPS) this.#fill(name, grouped.get(name) ?? [], now, more);
  }

  #fill(name, parts, now, more) {
    const section = this.#section(name);
    const n = parts.reduce((sum, part) => sum + part.tasks.length, 0);
    setAttribute(section.element, 'hidden', n === 0);
    setText(section.count, more && (name === 'today' || name === 'earlier') ? t('group.more', { n }) : number(n));
    arrange(section.list, parts.map((part) => (part.key ? this.#batch(part, now) : this.#row(part.tasks[0], now))));
  }

  #row(task, now) {
    if (!this.#rows.has(task.id)) this.#rows.set(task.id, makeRow(task, now, this.#options(task.id)));
    return this.#rows.get(task.id);
  }

  #batch({ key, tasks }, now) {
    if (!this.#batches.has(key)) this.#batches.set(key, makeBatch(key));
    const batch = this.#batches.get(key);
    this.#batchOf.set(key, tasks.map((task) => task.id));
    arrange(batchRows(batch), tasks.map((task) => this.#row(task, now)));
    patchBatch(batch, tasks);
    return batch;
  }

  #patchBatches(wanted) {
    for (const [key, ids] of this.#batchOf) {
      const tasks = ids.map((id) => wanted.get(id)).filter(Boolean);
      if (tasks.length > 0) patchBatch(this.#batches.get(key), tasks);
    }
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

  /** Page Up and Page Down go from item to item, as in a feed. */
  page(event) {
    if (event.key !== 'PageDown' && event.key !== 'PageUp') return;
    const items = [...this.root.querySelectorAll('.tb-row, .tb-batch > summary')].filter((item) => item.checkVisibility());
    const at = items.findIndex((item) => item.contains(item.getRootNode().activeElement));
    const next = items[event.key === 'PageDown' ? at + 1 : Math.max(0, at - 1)];
    if (!next) return;
    event.preventDefault();
    next.focus();
  }
}

/** A row whose task is gone keeps its place for as long as someone is in the list. */
function sayGone(row) {
  if (row.hasAttribute('data-gone')) return;
  setAttribute(row, 'data-gone', true);
  setText(row.querySelector('[data-part="word"]'), t('say.gone'));
  const acts = row.querySelector('[data-part="acts"]');
  if (acts.contains(row.getRootNode().activeElement)) row.focus({ preventScroll: true });
  acts.replaceChildren();
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
