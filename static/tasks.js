/**
 * The tasks that this page knows, as the server last told them.
 *
 * A snapshot replaces what is the caller's own, a delta merges by revision: what is not newer is dropped, an unknown id is
 * inserted, and so a final state is reopened only by a higher revision. Counts are the server's, taken whole; must never
 * count up or down here, and must never change a task before the server confirmed it. Listeners hear of changes at most
 * four times a second, of mere progress twice, so that a changed state finds its place at once. Once a second they hear that
 * time has passed, for what time alone changes. Whoever shows counts hears of them at once.
 */

const WINDOW_MS = 1_000;
const MOST = 4;
const APART_MS = 500;
/** A little less than a second, so that a tick that comes early is not left out. */
const AGES_AFTER_MS = 950;

export class Tasks {
  #items = new Map();
  #mine = new Set();
  #listeners = new Set();
  #countListeners = new Set();
  #changed = new Set();
  #replaced = false;
  #timer = null;
  #fireAt = Infinity;
  /** When listeners were last told, newest first; at most MOST instants. */
  #told = [];
  #agedAt = -Infinity;
  #ticking = null;
  #closed = false;

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
    return [...this.#items.values()].sort(newestFirst);
  }

  /** The caller's own tasks, newest first: what the topic `me` told. Others are known because a page shows them. */
  mine() {
    return this.list().filter((task) => this.#mine.has(task.id));
  }

  /** Whether any of the caller's own is still under way. */
  busy() {
    return this.mine().some((task) => !task.finishedAt);
  }

  /**
   * Hears `{ids, replaced, aged}` after changes, and about once a second while the page is visible: `aged` tells that
   * texts that age are due, whatever changed. Gives the function that ends it.
   */
  subscribe(listener) {
    this.#listeners.add(listener);
    this.#ticking ??= setInterval(() => {
      if (!document.hidden && performance.now() - this.#agedAt >= AGES_AFTER_MS) this.#flush();
    }, WINDOW_MS);
    return () => this.#listeners.delete(listener);
  }

  /** Hears of changed counts at once. Gives the function that ends it. */
  subscribeCounts(listener) {
    this.#countListeners.add(listener);
    return () => this.#countListeners.delete(listener);
  }

  #count(counts) {
    this.counts = counts;
    for (const listener of this.#countListeners) listener();
  }

  /** Takes a whole snapshot of the caller's own tasks; what it does not hold of them is no longer known. */
  replace({ items, counts, more, asOf }) {
    if (this.#closed) return;
    for (const id of this.#mine) this.#items.delete(id);
    this.#mine = new Set(items.map((task) => task.id));
    for (const task of items) this.#items.set(task.id, task);
    this.#count(counts ?? this.counts);
    this.more = Boolean(more);
    this.asOf = asOf ?? this.asOf;
    this.#replaced = true;
    this.#tell(true);
  }

  /** Takes changed tasks, each with its revision and absolute fields. With counts (or null) they are of the topic `me`. */
  merge(items, counts) {
    if (this.#closed) return;
    let urgent = Boolean(counts) && counts.unseen !== this.counts?.unseen;
    for (const item of items) {
      if (counts !== undefined) this.#mine.add(item.id);
      const known = this.#items.get(item.id);
      if (known && item.revision <= known.revision) continue;
      if (!known && !item.state) continue;
      urgent ||= item.state !== undefined && item.state !== known?.state;
      this.#items.set(item.id, { ...known, ...item });
      this.#changed.add(item.id);
    }
    if (counts) this.#count(counts);
    this.#tell(urgent);
  }

  /** A task is no longer there. */
  remove(id, revision) {
    const known = this.#items.get(id);
    if (!known || known.revision > revision) return;
    this.#items.delete(id);
    this.#mine.delete(id);
    this.#changed.add(id);
    this.#tell(true);
  }

  /** Marks that the server took, here or in another tab, until it says so too. */
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
    this.#mine.clear();
    this.#count(null);
    this.asOf = null;
    this.#replaced = true;
    this.#tell(true);
  }

  /** Tells at once what waits to be told. */
  settle() {
    if (this.#fireAt < Infinity) this.#flush();
  }

  #tell(urgent) {
    const now = performance.now();
    const at = Math.max(now, this.#mayTellAt(urgent));
    if (at <= now) return this.#flush();
    if (at >= this.#fireAt) return undefined;
    clearTimeout(this.#timer);
    this.#fireAt = at;
    this.#timer = setTimeout(() => this.#flush(), at - now);
    return undefined;
  }

  /** The soonest instant at which the rate allows to tell; progress leaves half of the places to what is urgent. */
  #mayTellAt(urgent) {
    const place = urgent ? MOST - 1 : MOST / 2 - 1;
    const whole = place < this.#told.length ? this.#told[place] + WINDOW_MS : -Infinity;
    return urgent ? whole : Math.max(whole, (this.#told[0] ?? -Infinity) + APART_MS);
  }

  #flush() {
    clearTimeout(this.#timer);
    this.#fireAt = Infinity;
    const now = performance.now();
    this.#told = [now, ...this.#told].slice(0, MOST);
    const aged = now - this.#agedAt >= AGES_AFTER_MS;
    if (aged) this.#agedAt = now;
    const change = { ids: this.#changed, replaced: this.#replaced, aged };
    this.#changed = new Set();
    this.#replaced = false;
    for (const listener of this.#listeners) listener(change);
  }
}

/** The order of lists: by creation, newest first. */
export function newestFirst(a, b) {
  if (a.createdAt !== b.createdAt) return a.createdAt < b.createdAt ? 1 : -1;
  return a.id < b.id ? 1 : -1;
}
