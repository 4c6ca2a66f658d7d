/**
 * Tells the page that a task has ended: `taskbell:ended`, once for each end.
 *
 * An end is one that came after the page began to look; what had ended before is never told, and what ended while the
 * connection was away is told when it is back. The event starts at the widget that shows the task and bubbles to the
 * document; where several show it, the others tell it to their own listeners alone, and where none does the document
 * itself is told. A resumed task may end again, which is another end.
 */
import { ended } from './words.js';

export class Ends {
  #finished = new Map();
  #tellers = new Set();
  #since = null;

  /** Follows a store. */
  constructor(tasks) {
    tasks.subscribe(({ ids, replaced }) => {
      this.#since ??= tasks.asOf && Date.parse(tasks.asOf);
      const changed = replaced ? tasks.list() : [...ids].map((id) => tasks.get(id));
      for (const task of changed) if (task) this.#look(task);
    });
  }

  /** `shows(task)` says whether an element shows a task; a `close` one speaks before others. Gives the end of it. */
  follow(element, shows, close = true) {
    const teller = { element, shows, close };
    this.#tellers.add(teller);
    return () => this.#tellers.delete(teller);
  }

  #look(task) {
    const before = this.#finished.get(task.id);
    const at = ended(task) ? task.finishedAt : null;
    if (before === at) return;
    this.#finished.set(task.id, at);
    // Known as unfinished, or never seen and ended since the first snapshot.
    if (at && (before === null || (before === undefined && this.#since !== null && Date.parse(at) > this.#since))) this.#tell(task);
  }

  #tell(task) {
    const tellers = [...this.#tellers].filter(({ element, shows }) => element.isConnected && shows(task)).sort((a, b) => b.close - a.close);
    if (tellers.length === 0) document.dispatchEvent(new CustomEvent('taskbell:ended', { detail: task }));
    tellers.forEach(({ element }, at) => element.tell('taskbell:ended', task, at === 0));
  }
}
