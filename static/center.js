/**
 * The notification center of one page: one connection, one store, the marks, and the other tabs.
 *
 * Every widget of a page shares one center per server. Seen, read and archived go to the server over HTTP and to the
 * other tabs over a BroadcastChannel whose name carries user and tenant; signing out clears all of them. The badge is
 * whatever the server says next: nothing is counted here.
 */
import { call, useAccess } from './api.js';
import { Connection } from './connection.js';
import { pageData } from './dom.js';
import { useLanguage } from './i18n.js';
import { rememberZone, setServerTime } from './time.js';
import { Tasks } from './tasks.js';

let shared = null;

/** The page's center; made at first use, from what the page or its host says about the caller. */
export function center(options = {}) {
  shared ??= make(options);
  return shared;
}

async function make({ url, getToken } = {}) {
  useAccess({ url, getToken });
  const page = pageData('tb-page');
  if (page?.now) setServerTime(page.now);
  await useLanguage();
  rememberZone();
  return new Center({ user: page?.user ?? null, tenant: page?.tenant ?? null, getToken });
}

class Center {
  constructor({ user, tenant, getToken }) {
    this.user = user;
    const scope = `${tenant ?? ''}:${user ?? ''}`;
    this.tasks = new Tasks();
    this.connection = new Connection({ getToken, scope, busy: () => this.tasks.busy() });
    this.connection.addEventListener('snap', ({ detail }) => (detail.topic === 'me' ? this.tasks.replace(detail) : this.tasks.merge(detail.items)));
    this.connection.addEventListener('delta', ({ detail }) => this.tasks.merge(detail.items ?? [], detail.topic === 'me' ? detail.counts : undefined));
    this.connection.addEventListener('gone', ({ detail }) => this.tasks.remove(detail.id, detail.revision));
    this.channel = typeof BroadcastChannel === 'undefined' ? null : new BroadcastChannel(`taskbell:${scope}`);
    this.channel?.addEventListener('message', ({ data }) => this.#heard(data));
    document.addEventListener('submit', (event) => event.target.matches?.('form[data-sign-out]') && this.channel?.postMessage({ kind: 'sign-out' }));
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
    this.#marked(kind, this.tasks.list().filter((task) => task.finishedAt).map((task) => task.id), answer);
  }

  #marked(kind, ids, answer) {
    if (answer?.counts) this.tasks.merge([], answer.counts);
    this.tasks.mark(ids, kind === 'archive' ? 'archived' : kind);
    this.channel?.postMessage({ kind: 'mark', mark: kind === 'archive' ? 'archived' : kind, ids });
  }

  #heard(message) {
    if (message.kind === 'mark') this.tasks.mark(message.ids, message.mark);
    if (message.kind === 'sign-out') {
      this.tasks.clear();
      this.connection.signOut();
    }
  }
}
