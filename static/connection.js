/**
 * One WebSocket to the server: the protocol `taskbell.v1`, kept alive, reconnected without a stampede, never polled.
 *
 * A connection gives a snapshot first and changes after it; whoever listens gets both as events. Rules:
 * - The first frame is `hello`; nothing else is sent before `welcome`.
 * - Any frame resets the watchdog; a ping that shows a higher head asks for exactly one `sync`; asking while one is in
 *   flight shares it.
 * - Reconnect: random(0, 2 s) first, then random(0, min(30 s, 2^n s)), n back to 0 only after 10 s of life. While hidden
 *   every 30 s as long as own tasks run, else none after 5 minutes. None when signed out. At once on visible, online,
 *   resume and pageshow.
 * - The socket is closed on pagehide, because an open one keeps the page out of the back/forward cache.
 * - Of several hidden tabs at most one keeps its socket, by a Web Lock; where there are no locks a hidden tab keeps none.
 * Must never carry a change to the server (those go over HTTP), and never put a token into the address.
 */
import { address, call } from './api.js';
import { currentLanguage } from './i18n.js';
import { serverNow, setServerTime } from './time.js';

const PROTOCOL = 'taskbell.v1';
const STABLE_MS = 10_000;
const FIRST_DELAY_MS = 2_000;
const LONGEST_DELAY_MS = 30_000;
const HIDDEN_LIMIT_MS = 300_000;
const OFFLINE_AFTER_MS = 60_000;
const GRACE_MS = 10_000;
const OPENING_MS = 15_000;

export class Connection extends EventTarget {
  #getToken;
  #lockName;
  #busy;
  #socket = null;
  #welcomed = false;
  #attempt = 0;
  #have = null;
  #topics = new Map();
  #timers = { retry: 0, watchdog: 0, stable: 0, lost: 0 };
  #pingMs = 25_000;
  #hiddenSince = document.hidden ? performance.now() : null;
  #lostSince = null;
  #probed = false;
  #stopped = true;
  #drain = null;
  #flight = null;
  #releaseLock = null;

  /** One of: connecting, live, delayed, reconnecting, offline, signed-out. */
  live = 'connecting';
  /** The server's instant (ms) at which what we show was last known to be true; null before the first welcome. */
  trueAt = null;

  /**
   * `getToken` gives the token of a host page (none: the session cookie speaks); `scope` names user and tenant, so that
   * tabs of another person do not share a lock; `busy` tells whether own tasks are under way.
   */
  constructor({ getToken = null, scope = '', busy = () => false } = {}) {
    super();
    this.#getToken = getToken;
    this.#lockName = `taskbell:hidden:${scope}`;
    this.#busy = busy;
  }

  /** The owner's head up to which this page has been told; 0 before the first snapshot. */
  get head() {
    return this.#have?.head ?? 0;
  }

  /** Opens the socket and listens to the page's life. */
  start() {
    if (!this.#stopped) return;
    this.#stopped = false;
    document.addEventListener('visibilitychange', () => (document.hidden ? this.#hide() : this.#show()));
    document.addEventListener('resume', () => this.#now());
    addEventListener('online', () => this.#now());
    addEventListener('offline', () => this.#setLive('offline'));
    addEventListener('pagehide', () => this.#close(1000));
    addEventListener('pageshow', (event) => event.persisted && this.#now());
    this.#open();
  }

  /** Ends it for good: the person is signed out. */
  signOut() {
    this.#setLive('signed-out');
    clearTimeout(this.#timers.retry);
    this.#close(1000);
  }

  /**
   * Subscribes to a topic for as long as someone wants it. `log` gives the seq of the last log line that is there, asked
   * again on each reconnect; without it no log is sent. Gives the function that ends it.
   */
  subscribe(topic, log = null) {
    const wanted = this.#topics.get(topic) ?? { users: 0, log: null };
    const asks = wanted.users === 0 || (log && !wanted.log);
    this.#topics.set(topic, { users: wanted.users + 1, log: wanted.log ?? log });
    if (asks) this.#sendSub(topic);
    return () => {
      const left = this.#topics.get(topic);
      left.users -= 1;
      if (left.users > 0) return;
      this.#topics.delete(topic);
      this.#send({ t: 'unsub', topic });
    };
  }

  #sendSub(topic) {
    const { log } = this.#topics.get(topic);
    this.#send(log ? { t: 'sub', topic, after: log() } : { t: 'sub', topic, log: false });
  }

  /** Asks for the truth once: over the socket when it is up, else by one HTTP read. Concurrent callers share it. */
  refresh() {
    this.#flight ??= this.#ask().finally(() => {
      this.#flight = null;
    });
    return this.#flight;
  }

  async #ask() {
    if (this.#welcomed) {
      this.#send({ t: 'sync', have: this.#have });
      return this.#answered();
    }
    const snapshot = await call('GET', 'api/v1/notifications');
    if (snapshot.asOf) setServerTime(snapshot.asOf);
    this.trueAt = serverNow();
    this.#emit('snap', { topic: 'me', ...snapshot });
    if (this.live !== 'signed-out') this.#now();
  }

  #answered() {
    return new Promise((resolve, reject) => {
      const end = (settle) => () => {
        clearTimeout(limit);
        this.removeEventListener('synced', done);
        this.removeEventListener('lost', lost);
        settle();
      };
      const done = end(resolve);
      const lost = end(() => reject(new Error('the connection was lost')));
      const limit = setTimeout(lost, GRACE_MS);
      this.addEventListener('synced', done);
      this.addEventListener('lost', lost);
    });
  }

  async #open() {
    clearTimeout(this.#timers.retry);
    if (this.#socket || this.#stopped || this.live === 'signed-out') return;
    const url = address('api/v1/ws');
    url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
    const socket = new WebSocket(url, PROTOCOL);
    this.#socket = socket;
    this.#watch(OPENING_MS);
    socket.addEventListener('open', async () => {
      const token = this.#getToken ? await this.#getToken() : null;
      if (socket === this.#socket) this.#send({ t: 'hello', token, have: this.#have, lang: currentLanguage() }, true);
    });
    socket.addEventListener('message', (event) => socket === this.#socket && this.#receive(event.data));
    socket.addEventListener('close', (event) => socket === this.#socket && this.#lost(event.code));
  }

  #receive(text) {
    let frame;
    try {
      frame = JSON.parse(text);
    } catch {
      return;
    }
    if (frame === null || typeof frame !== 'object') return;
    this.#watch(this.#pingMs + GRACE_MS);
    const handler = this.#handlers[frame.t];
    if (handler) handler(frame);
  }

  #handlers = {
    welcome: (frame) => {
      setServerTime(frame.serverTime);
      this.#pingMs = frame.pingMs ?? this.#pingMs;
      if (this.#have && this.#have.epoch !== frame.epoch) this.#have = null;
      this.#epoch = frame.epoch;
      this.#welcomed = true;
      this.#probed = false;
      this.#drain = null;
      this.#send({ t: 'view', visible: !document.hidden });
      for (const topic of this.#topics.keys()) this.#sendSub(topic);
      this.#timers.stable = setTimeout(() => {
        this.#attempt = 0;
      }, STABLE_MS);
      this.#setLive('live');
    },
    snap: (frame) => {
      if (frame.topic === 'me') this.#have = { epoch: frame.epoch ?? this.#epoch, head: frame.head };
      this.#confirm();
      this.#emit('snap', frame);
      if (frame.topic === 'me') this.#emit('synced');
    },
    same: (frame) => {
      this.#confirm();
      if (frame.topic === 'me') this.#emit('synced');
    },
    delta: (frame) => {
      if (frame.topic === 'me' && this.#have) this.#have.head = Math.max(this.#have.head, frame.head);
      this.#confirm();
      this.#emit('delta', frame);
    },
    gone: (frame) => {
      this.#confirm();
      this.#emit('gone', frame);
    },
    log: (frame) => this.#emit('log', frame),
    ping: (frame) => {
      this.#send({ t: 'pong' });
      this.#confirm();
      if (this.#have && frame.head > this.#have.head) this.refresh().catch(() => {});
    },
    status: (frame) => this.#setLive(frame.live === 'degraded' ? 'delayed' : 'live'),
    auth: async () => {
      if (this.#getToken) this.#send({ t: 'refresh', token: await this.#getToken() });
    },
    drain: (frame) => {
      this.#drain = frame;
    },
    err: (frame) => this.#emit('refused', frame),
  };

  #epoch = null;

  #confirm() {
    this.trueAt = serverNow();
  }

  #send(frame, first = false) {
    if (this.#socket?.readyState === WebSocket.OPEN && (first || this.#welcomed)) this.#socket.send(JSON.stringify(frame));
  }

  #watch(limitMs) {
    clearTimeout(this.#timers.watchdog);
    this.#timers.watchdog = setTimeout(() => {
      const socket = this.#socket;
      this.#lost(1006);
      socket?.close(4000);
    }, limitMs);
  }

  #close(code) {
    const socket = this.#socket;
    this.#forget();
    socket?.close(code);
  }

  #forget() {
    this.#socket = null;
    this.#welcomed = false;
    clearTimeout(this.#timers.watchdog);
    clearTimeout(this.#timers.stable);
    this.#emit('lost');
  }

  #lost(code) {
    const neverWelcomed = !this.#welcomed;
    this.#forget();
    if (code === 4403 || (code === 4001 && !this.#getToken)) return void this.signOut();
    this.#setLive(navigator.onLine === false ? 'offline' : 'reconnecting');
    if (neverWelcomed && this.#attempt > 0) this.#probe();
    this.#later(code);
  }

  /** A refused handshake does not tell a browser why: one cheap read per outage tells whether we are signed out. */
  async #probe() {
    if (this.#probed) return;
    this.#probed = true;
    await call('GET', 'api/v1/actions').catch((problem) => {
      if (problem.status === 401) this.signOut();
    });
  }

  #later(code) {
    if (this.#stopped || this.live === 'signed-out') return;
    let delay;
    if (document.hidden) {
      const hiddenMs = performance.now() - (this.#hiddenSince ?? performance.now());
      if (this.#getsNoSocket || (hiddenMs > HIDDEN_LIMIT_MS && !this.#busy())) return;
      delay = LONGEST_DELAY_MS;
    } else if (this.#drain) {
      delay = this.#drain.retryMs + Math.random() * this.#drain.spreadMs;
      this.#drain = null;
    } else if (code === 4429) {
      delay = LONGEST_DELAY_MS;
    } else {
      const cap = this.#attempt === 0 ? FIRST_DELAY_MS : Math.min(LONGEST_DELAY_MS, 1000 * 2 ** this.#attempt);
      delay = Math.random() * cap;
    }
    this.#attempt = Math.min(this.#attempt + 1, 16);
    clearTimeout(this.#timers.retry);
    this.#timers.retry = setTimeout(() => this.#open(), delay);
  }

  /** A moment at which a person may be looking: connect, or when connected make sure that we are not behind. */
  #now() {
    if (this.#stopped || this.live === 'signed-out') return;
    if (this.#welcomed) return void this.refresh().catch(() => {});
    this.#open();
  }

  #getsNoSocket = false;

  #show() {
    this.#hiddenSince = null;
    this.#getsNoSocket = false;
    this.#releaseLock?.();
    this.#releaseLock = null;
    this.#send({ t: 'view', visible: true });
    this.#now();
  }

  async #hide() {
    this.#hiddenSince = performance.now();
    this.#send({ t: 'view', visible: false });
    const kept = await this.#keepsSocket();
    if (!kept && document.hidden) {
      this.#getsNoSocket = true;
      clearTimeout(this.#timers.retry);
      this.#close(1000);
    }
  }

  #keepsSocket() {
    if (!navigator.locks) return Promise.resolve(false);
    return new Promise((decide) => {
      const held = navigator.locks.request(this.#lockName, { ifAvailable: true }, (lock) => {
        decide(Boolean(lock));
        return lock ? new Promise((release) => (this.#releaseLock = release)) : undefined;
      });
      held.catch(() => decide(false));
    });
  }

  #setLive(next) {
    if (this.live === 'signed-out' && next !== 'signed-out') return;
    clearTimeout(this.#timers.lost);
    if (next === 'reconnecting') {
      this.#lostSince ??= performance.now();
      const left = OFFLINE_AFTER_MS - (performance.now() - this.#lostSince);
      if (left <= 0) next = 'offline';
      else this.#timers.lost = setTimeout(() => this.#setLive('offline'), left);
    } else if (next === 'live') {
      this.#lostSince = null;
    }
    if (next === this.live) return;
    this.live = next;
    this.#emit('live');
  }

  #emit(type, detail = null) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}
