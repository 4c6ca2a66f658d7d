/**
 * The notification center of one page: one connection, one store, the marks, and the other tabs.
 *
 * Every widget of a page shares one center per server. Seen, read and archived go to the server over HTTP and to the
 * other tabs over a BroadcastChannel whose name carries user and tenant; signing out clears all of them. The badge is
 * whatever the server says next: nothing is counted here.
 */
import { accessKnown, call, useAccess } from './api.js';
import { Connection } from './connection.js';
import { pageData } from './dom.js';
import { Ends } from './ends.js';
import { pageLanguage, useLanguage } from './i18n.js';
import { HOSTED, loadDrawings } from './place.js';
import { serverNow, setServerTime } from './time.js';
import { Tasks } from './tasks.js';

let shared = null;
let made = null;

/** The page's center; made at first use, once the page or its host has told who speaks. */
export function center(options = {}) {
  if (useAccess(options)) made?.connection.signIn();
  shared ??= make(options);
  return shared;
}

async function make({ lang }) {
  await accessKnown();
  const page = HOSTED ? null : pageData('tb-page');
  if (page?.now) setServerTime(page.now);
  await Promise.all([useLanguage(pageLanguage(lang)), loadDrawings()]);
  made = new Center(page);
  return made;
}

class Center {
  #channel = null;

  constructor(page) {
    const who = page ? { tenant: page.tenant, user: page.user } : null;
    this.tasks = new Tasks();
    this.ends = new Ends(this.tasks);
    this.connection = new Connection({ who, busy: () => this.tasks.busy(), trueAt: page ? serverNow() : null });
    this.connection.addEventListener('snap', ({ detail }) => (detail.topic === 'me' ? this.tasks.replace(detail) : this.tasks.merge(detail.items)));
    this.connection.addEventListener('delta', ({ detail }) => this.tasks.merge(detail.items ?? [], detail.topic === 'me' ? (detail.counts ?? null) : undefined));
    this.connection.addEventListener('gone', ({ detail }) => this.tasks.remove(detail.id, detail.revision));
    this.connection.addEventListener('live', () => this.connection.live === 'signed-out' && this.#end());
    this.connection.addEventListener('who', ({ detail }) => this.#know(detail));
    if (who) this.#know(who);
    this.connection.start();
  }

  /** Marks tasks as seen, read or archived: at the server, and in the other tabs. */
  async mark(kind, ids) {
    if (ids.length === 0) return;
    const answer = await call('POST', `api/v1/notifications/${kind}`, { ids });
    this.#marked(kind, ids, answer);
  }

  /** The same for all up to what the person was shown. */
  async markAll(kind) {
    const answer = await call('POST', `api/v1/notifications/${kind}`, { upTo: this.connection.head });
    this.#marked(kind, this.tasks.mine().filter((task) => task.finishedAt).map((task) => task.id), answer);
  }

  #marked(kind, ids, { counts } = {}) {
    const mark = kind === 'archive' ? 'archived' : kind;
    // A live socket tells the counts itself, and may have told newer ones already.
    if (counts && this.connection.live !== 'live') this.tasks.merge([], counts);
    this.tasks.mark(ids, mark);
    this.#channel?.postMessage({ kind: 'mark', mark, ids, counts });
  }

  /** From here on the tabs of this person hear each other. An open channel keeps a page out of the back/forward cache. */
  #know({ tenant, user }) {
    this.user = user;
    this.scope = `${tenant}:${user}`;
    if (typeof BroadcastChannel === 'undefined') return;
    const open = () => {
      this.#channel ??= new BroadcastChannel(`taskbell:${this.scope}`);
      this.#channel.onmessage = ({ data }) => this.#heard(data);
    };
    addEventListener('pagehide', () => {
      this.#channel?.close();
      this.#channel = null;
    });
    addEventListener('pageshow', open);
    open();
  }

  #heard(message) {
    if (message.kind === 'sign-out') return this.connection.signOut();
    if (message.kind !== 'mark') return;
    // A tab without a socket hears of the server's counts from the tab that asked; one with a socket hears them first-hand.
    if (message.counts && this.connection.live !== 'live') this.tasks.merge([], message.counts);
    this.tasks.mark(message.ids, message.mark);
  }

  /** Ends this page and all other tabs of its person. */
  signOut() {
    this.#channel?.postMessage({ kind: 'sign-out' });
    this.connection.signOut();
  }

  #end() {
    this.tasks.clear();
    this.#channel?.close();
    this.#channel = null;
  }
}
