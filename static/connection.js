/**
 * One WebSocket to the server: the protocol `taskbell.v1`, kept alive, reconnected without a stampede, never polled.
 *
 * A connection gives a snapshot first and changes after it; whoever listens gets both as events. Rules:
 * - The first frame is `hello`; nothing else is sent before `welcome`.
 * - Any frame resets the watchdog; a ping that shows a higher head asks for exactly one `sync`.
 * - A read is a hello, a `sync`, or one HTTP call where no socket answers. One trigger is one read; triggers that come while
 *   one is under way share it.
 * - Reconnect by the rules of backoff.js, the attempts back to 0 only after 10 s of life. While hidden every 30 s as long as
 *   own tasks run, else none after 5 minutes. None when signed out. At once on visible, online, resume and pageshow.
 * - The socket is closed on pagehide, because an open one keeps the page out of the back/forward cache; of several hidden
 *   tabs at most one has one (tab.js).
 * - The server says in its welcome whom it took us for. Another one than this page was made for ends it: a page never shows
 *   the tasks of two people.
 * - A server that does not understand us is not asked again soon, and the person is told to load the page anew.
 * - A host page's token is renewed before it ends. One that is refused is asked for once more; refused again, we are signed
 *   out. One that the host page cannot give is told as a failed read and asked for again as after any loss.
 * Must never carry a change to the server (those go over HTTP), and never put a token into the address.
 */
import { Problem, address, call, token, usesToken } from './api.js';
import { UNSPOKEN, retryDelay } from './backoff.js';
import { currentLanguage, t } from './i18n.js';
import { Tab } from './tab.js';
import { serverNow, setServerTime } from './time.js';

const PROTOCOL = 'taskbell.v1';
const STABLE_MS = 10_000;
const OFFLINE_AFTER_MS = 60_000;
const GRACE_MS = 10_000;
const OPENING_MS = 15_000;
/** How long a read waits for a socket that is there or on its way, before it takes the other road. */
const ANSWER_MS = 5_000;
/** Until a host page that gave no token is asked again, while the old one still holds. */
const RENEW_MS = 5_000;

export class Connection extends EventTarget {
  #tab;
  #busy;
  #who;
  #socket = null;
  #welcomed = false;
  #asked = false;
  #attempt = 0;
  #have = null;
  #epoch = null;
  #topics = new Map();
  #timers = { retry: 0, watchdog: 0, stable: 0, lost: 0, renew: 0 };
  #pingMs = 25_000;
  #lostSince = null;
  #probed = false;
  #proving = false;
  #refused = false;
  #stopped = true;
  #drain = null;
  #flight = null;

  /** One of: connecting, live, delayed, reconnecting, offline, signed-out. */
  live = 'connecting';
  /** The server's instant (ms) at which what we show was last known to be true; null while nothing was ever told. */
  trueAt = null;
  /** Why the last read failed, a `Problem`; null when it went well. */
  fault = null;

  /**
   * `who` is the `{tenant, user}` that the page was made for, null when only the server knows; `busy` tells whether own tasks
   * are under way; `trueAt` is the instant of what the server wrote into the page.
   */
  constructor({ who = null, busy = () => false, trueAt = null } = {}) {
    super();
    this.#who = who;
    this.#busy = busy;
    this.#tab = new Tab(lockName(who));
    this.trueAt = trueAt;
  }

  /** The owner's head up to which this page has been told; 0 before the first snapshot. */
  get head() {
    return this.#have?.head ?? 0;
  }

  /** Opens the socket and listens to the page's life. */
  start() {
    if (!this.#stopped) return;
    this.#stopped = false;
    const on = { look: () => this.#look(), hide: () => this.#send({ t: 'view', visible: false }), yield: () => this.#rest(), keep: () => this.#now(), leave: () => this.#rest() };
    for (const [type, act] of Object.entries(on)) this.#tab.addEventListener(type, act);
    addEventListener('offline', () => this.#setLive('offline'));
    this.#tab.start();
    this.#open();
  }

  /** Another token is at hand, perhaps somebody else's: begins anew. */
  signIn() {
    this.#refused = false;
    if (this.live !== 'signed-out') return this.#now();
    this.live = 'connecting';
    [this.#who, this.#have, this.#attempt] = [null, null, 0];
    this.#emit('live');
    this.#open();
  }

  /** Ends it for good: nobody is signed in, or somebody else. */
  signOut() {
    this.#setLive('signed-out');
    this.#rest();
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

  /** Asks for the truth once: over the socket when it is up or on its way, else by one HTTP read. Callers at once share it. */
  refresh() {
    this.#flight ??= this.#read()
      .then(() => this.#fault(null), (problem) => {
        this.#fault(problem);
        throw problem;
      })
      .finally(() => {
        this.#flight = null;
      });
    return this.#flight;
  }

  async #read() {
    if (this.#welcomed && !this.#asked) this.#send({ t: 'sync', have: this.#have });
    if (this.#socket && (await this.#answered())) return;
    const snapshot = await call('GET', 'api/v1/notifications').catch((problem) => {
      if (problem.status === 401) this.signOut();
      throw problem;
    });
    if (snapshot.asOf) setServerTime(snapshot.asOf);
    // A socket may have come up meanwhile, and have brought something newer.
    if (this.#have?.epoch === snapshot.epoch && this.#have.head > snapshot.head) return;
    this.#have = { epoch: snapshot.epoch, head: snapshot.head };
    this.#confirm();
    this.#emit('snap', { ...snapshot, topic: 'me' });
    this.#now();
  }

  /** Whether the socket brings the truth in time. */
  #answered() {
    return new Promise((resolve) => {
      const end = (answer) => () => {
        clearTimeout(limit);
        this.removeEventListener('synced', done);
        this.removeEventListener('lost', lost);
        resolve(answer);
      };
      const [done, lost] = [end(true), end(false)];
      const limit = setTimeout(lost, ANSWER_MS);
      this.addEventListener('synced', done);
      this.addEventListener('lost', lost);
    });
  }

  #fault(problem) {
    this.fault = problem;
    this.#emit('read');
  }

  async #open() {
    clearTimeout(this.#timers.retry);
    if (this.#socket || this.#proving || this.#stopped || this.live === 'signed-out' || !this.#tab.mayConnect) return;
    this.#proving = true;
    const proof = await this.#proof();
    this.#proving = false;
    if (proof === undefined || this.live === 'signed-out' || !this.#tab.mayConnect) return;
    const url = address('api/v1/ws');
    url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
    const socket = new WebSocket(url, PROTOCOL);
    this.#socket = socket;
    this.#watch(OPENING_MS);
    socket.addEventListener('open', () => {
      if (socket !== this.#socket) return;
      this.#asked = true;
      this.#send({ t: 'hello', token: proof, have: this.#have, lang: currentLanguage() }, true);
    });
    socket.addEventListener('message', (event) => socket === this.#socket && this.#receive(event.data));
    socket.addEventListener('close', (event) => socket === this.#socket && this.#lost(event.code));
  }

  /** What the hello carries: a token, null where the cookie speaks, undefined where the host page gives none now. */
  async #proof() {
    try {
      return await token({ fresh: this.#refused });
    } catch (problem) {
      if (problem.status === 401) this.signOut();
      else {
        this.#fault(problem);
        this.#lost(1006);
      }
      return undefined;
    }
  }

  async #renew() {
    if (!usesToken()) return;
    try {
      this.#send({ t: 'refresh', token: await token({ fresh: true }) });
    } catch (problem) {
      if (problem.status === 401) this.signOut();
      else if (this.#welcomed) this.#renewIn(RENEW_MS);
    }
  }

  #renewIn(ms) {
    clearTimeout(this.#timers.renew);
    this.#timers.renew = setTimeout(() => this.#renew(), ms);
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
      if (!this.#isUs(frame)) return void this.signOut();
      setServerTime(frame.serverTime);
      this.#pingMs = frame.pingMs ?? this.#pingMs;
      if (this.#have && this.#have.epoch !== frame.epoch) this.#have = null;
      this.#epoch = frame.epoch;
      this.#welcomed = true;
      this.#probed = false;
      this.#refused = false;
      if (this.fault) this.#fault(null);
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
      if (frame.topic === 'me') this.#synced();
    },
    same: (frame) => {
      this.#confirm();
      if (frame.topic === 'me') this.#synced();
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
    // Half of the time that is left, so that a token of a minute is not asked for over and over.
    auth: ({ expiresInMs }) => this.#renewIn(expiresInMs / 2),
    drain: (frame) => {
      this.#drain = frame;
    },
  };

  /** Whether the server took us for the person whom this page is for; the first one it names, where the page does not know. */
  #isUs({ tenant, user }) {
    if (user === undefined) return true;
    if (this.#who) return this.#who.user === user && this.#who.tenant === tenant;
    this.#who = { tenant, user };
    this.#tab.rename(lockName(this.#who));
    this.#emit('who', this.#who);
    return true;
  }

  #synced() {
    this.#asked = false;
    this.#emit('synced');
  }

  #confirm() {
    this.trueAt = serverNow();
    if (this.live === 'offline' && this.#welcomed) this.#setLive('live');
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

  /** No socket and no retry, until somebody looks or it is on this tab to have one. */
  #rest() {
    clearTimeout(this.#timers.retry);
    if (this.live === 'live' || this.live === 'delayed') this.#setLive('connecting');
    const socket = this.#socket;
    if (!socket) return;
    this.#forget();
    socket.close(1000);
  }

  #forget() {
    this.#socket = null;
    this.#welcomed = false;
    this.#asked = false;
    clearTimeout(this.#timers.watchdog);
    clearTimeout(this.#timers.stable);
    clearTimeout(this.#timers.renew);
    this.#emit('lost');
  }

  #lost(code) {
    const neverWelcomed = !this.#welcomed;
    this.#forget();
    if (code === 4403 || (code === 4001 && (this.#refused || !usesToken()))) return void this.signOut();
    this.#refused = code === 4001;
    this.#setLive(navigator.onLine === false ? 'offline' : 'reconnecting');
    if (this.#refused) return void this.#open();
    if (code === UNSPOKEN) this.#fault(new Problem(0, { detail: t('error.protocol') }));
    if (neverWelcomed && this.#attempt > 0 && !this.#proving) this.#probe();
    this.#later(code);
  }

  /** A refused handshake does not tell a browser why: one cheap read per outage that is answered tells whether we are signed out. */
  async #probe() {
    if (this.#probed) return;
    this.#probed = true;
    await call('GET', 'api/v1/actions').catch(({ status }) => {
      if (status === 401) this.signOut();
      if (status === 0) this.#probed = false;
    });
  }

  #later(code) {
    const { hiddenMs, mayConnect } = this.#tab;
    const situation = { attempt: this.#attempt, hidden: document.hidden, hiddenMs, mayConnect, busy: this.#busy(), drain: this.#drain, code, signedOut: this.#stopped || this.live === 'signed-out' };
    const delay = retryDelay(situation);
    this.#drain = null;
    if (delay === null) return;
    this.#attempt = Math.min(this.#attempt + 1, 16);
    clearTimeout(this.#timers.retry);
    this.#timers.retry = setTimeout(() => this.#open(), delay);
  }

  /** A moment at which the truth is wanted: connect, or when connected make sure that we are not behind. */
  #now() {
    if (this.#stopped || this.live === 'signed-out' || !this.#tab.mayConnect) return;
    if (this.#welcomed) return void this.refresh().catch(() => {});
    this.#open();
  }

  #look() {
    this.#emit('look');
    this.#send({ t: 'view', visible: true });
    this.#now();
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

/** Tabs of one person share a lock; those of another one do not. */
function lockName(who) {
  return `taskbell:hidden:${who?.tenant ?? ''}:${who?.user ?? ''}`;
}
