/**
 * The tasks that this page knows, as the server last told them.
 *
 * A snapshot replaces, a delta merges by revision: what is not newer is dropped, an unknown id is inserted, and so a
 * final state is reopened only by a higher revision. Counts are the server's, taken whole; must never count up or down
 * here, and must never change a task before the server confirmed it. Listeners hear of progress at most four times a
 * second, of a changed state at once.
 */

const QUIET_MS = 250;

export class Tasks {
  #items = new Map();
  #listeners = new Set();
  #changed = new Set();
  #replaced = false;
  #timer = null;
  #closed = false;
  #toldAt = 0;

  /** By name, as the server counts them: one per state, and `unseen`. Null before the first snapshot. */
  counts = null;
  /** Whether the server has more of the owner's tasks than the snapshot held. */
  more = false;
  /** When the newest snapshot was read, as an RFC 3339 instant; null before the first. */
  asOf = null;

  /** The task of this id, or undefined. */
  get(id) {
    return this.#items.get(id);
  }

  /** All tasks, newest first: an id begins with its time. */
  list() {
    return [...this.#items.values()].sort((a, b) => (a.createdAt < b.createdAt ? 1 : a.createdAt > b.createdAt ? -1 : a.id < b.id ? 1 : -1));
  }

  /** Whether any of these is still under way. */
  busy() {
    return this.list().some((task) => !task.finishedAt);
  }

  /** Hears `{ids, replaced}` after changes. Gives the function that ends it. */
  subscribe(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Takes a whole snapshot; what it does not hold is no longer known. */
  replace({ items, counts, more, asOf }) {
    if (this.#closed) return;
    const known = this.#items;
    this.#items = new Map(items.map((task) => [task.id, withRevision(known.get(task.id), task)]));
    this.counts = counts ?? this.counts;
    this.more = Boolean(more);
    this.asOf = asOf ?? this.asOf;
    this.#replaced = true;
    this.#tell(true);
  }

  /** Takes changed tasks. Each carries its revision and absolute fields. */
  merge(items, counts) {
    if (this.#closed) return;
    let urgent = Boolean(counts) && counts.unseen !== this.counts?.unseen;
    for (const item of items) {
      const known = this.#items.get(item.id);
      if (known && item.revision <= known.revision) continue;
      if (!known && !item.state) continue;
      const task = withRevision(known, { ...known, ...item });
      urgent ||= task.state !== known?.state;
      this.#items.set(item.id, task);
      this.#changed.add(item.id);
    }
    if (counts) this.counts = counts;
    this.#tell(urgent);
  }

  /** A task is no longer there. */
  remove(id, revision) {
    const known = this.#items.get(id);
    if (!known || known.revision > revision) return;
    this.#items.delete(id);
    this.#changed.add(id);
    this.#tell(true);
  }

  /** Marks that another tab set, until the server says so too. */
  mark(ids, mark) {
    for (const id of ids) {
      const known = this.#items.get(id);
      if (!known || known[mark]) continue;
      this.#items.set(id, { ...known, [mark]: true });
      this.#changed.add(id);
    }
    this.#tell(true);
  }

  /** Forgets everything and takes no more: another person, or nobody, is signed in. */
  clear() {
    this.#closed = true;
    this.#items.clear();
    this.counts = null;
    this.asOf = null;
    this.#replaced = true;
    this.#tell(true);
  }

  #tell(urgent) {
    const wait = urgent ? 0 : QUIET_MS - (performance.now() - this.#toldAt);
    if (wait <= 0) this.#flush();
    else this.#timer ??= setTimeout(() => this.#flush(), wait);
  }

  #flush() {
    clearTimeout(this.#timer);
    this.#timer = null;
    this.#toldAt = performance.now();
    const change = { ids: this.#changed, replaced: this.#replaced };
    this.#changed = new Set();
    this.#replaced = false;
    for (const listener of this.#listeners) listener(change);
  }
}

/** Keeps on the task that its total was revised, so that the row can say so. */
function withRevision(known, task) {
  const before = known?.progress?.total;
  const now = task.progress?.total;
  if (before > 0 && now > 0 && before !== now) return { ...task, revised: { from: before, to: now } };
  return known?.revised && known.attempt === task.attempt ? { ...task, revised: known.revised } : task;
}
