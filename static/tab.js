/**
 * The life of this tab: looked at, hidden, left, come back; and which of several hidden tabs keeps its socket.
 *
 * Events: `look` (somebody may be looking now), `hide` (nobody looks any more), `yield` (hidden, and another tab keeps its
 * socket), `keep` (hidden, and it is on this tab to keep one), `leave` (the page goes, perhaps into the back/forward cache or
 * into a freeze). At most one hidden tab keeps a socket, by a Web Lock that the next one inherits; without locks, as on plain
 * http, none does. Must hold no lock after `leave`: it would keep the page out of the cache, and the others from theirs.
 */

export class Tab extends EventTarget {
  #lockName;
  #release = null;
  #waiting = null;
  #left = false;
  #hiddenSince = document.hidden ? performance.now() : null;

  /** `lockName` is the same in all tabs of one person. */
  constructor(lockName) {
    super();
    this.#lockName = lockName;
  }

  /** How long nobody has looked, in milliseconds. */
  get hiddenMs() {
    return this.#hiddenSince === null ? 0 : performance.now() - this.#hiddenSince;
  }

  /** Whether this tab may have a socket. */
  get mayConnect() {
    return !this.#left && (!document.hidden || this.#release !== null);
  }

  /** Listens to the page's life from now on. */
  start() {
    document.addEventListener('visibilitychange', () => (document.hidden ? this.#hide() : this.#look()));
    document.addEventListener('freeze', () => this.#leave());
    document.addEventListener('resume', () => this.#comeBack());
    addEventListener('online', () => this.#look());
    addEventListener('pagehide', () => this.#leave());
    addEventListener('pageshow', (event) => event.persisted && this.#comeBack());
    if (document.hidden) this.#queue();
  }

  /** Another person's tabs are not ours: the lock is asked for under another name from now on. */
  rename(lockName) {
    this.#lockName = lockName;
  }

  #look() {
    if (document.hidden || this.#left) return;
    this.#hiddenSince = null;
    this.#letGo();
    this.#emit('look');
  }

  async #hide() {
    // A page that is left is hidden too, after pagehide.
    if (this.#left) return;
    this.#hiddenSince ??= performance.now();
    this.#emit('hide');
    await this.#queue();
  }

  #leave() {
    this.#left = true;
    this.#letGo();
    this.#emit('leave');
  }

  #comeBack() {
    this.#left = false;
    if (document.hidden) this.#hide();
    else this.#look();
  }

  /** Asks for the lock, and goes on waiting for it after another tab was found to have it. */
  async #queue() {
    if (this.#release || this.#waiting) return;
    if (!navigator.locks) {
      this.#emit('yield');
      return;
    }
    const waiting = (this.#waiting = new AbortController());
    const held = await this.#request({ ifAvailable: true });
    if (held || waiting.signal.aborted) return;
    this.#emit('yield');
    this.#request({ signal: waiting.signal });
  }

  #request(options) {
    const waiting = this.#waiting;
    return new Promise((decide) => {
      const done = navigator.locks.request(this.#lockName, options, (lock) => {
        const wanted = Boolean(lock) && !waiting.signal.aborted;
        if (wanted) {
          this.#waiting = null;
          this.#emitKeep();
        }
        decide(wanted);
        return wanted ? new Promise((release) => (this.#release = release)) : undefined;
      });
      done.catch(() => decide(false));
    });
  }

  #emitKeep() {
    queueMicrotask(() => this.#emit('keep'));
  }

  #letGo() {
    this.#waiting?.abort();
    this.#waiting = null;
    this.#release?.();
    this.#release = null;
  }

  #emit(type) {
    this.dispatchEvent(new Event(type));
  }
}
