/**
 * `<taskbell-bell>`: the bell with its badge and ring, and the panel with the tasks of the person who looks.
 *
 * What the element holds in the page (a plain link) shows until the script has taken over. Badge and running figure are
 * the server's counts. A finished task is marked seen after it was rendered for a second in the open panel. Opening asks
 * for the truth once. Must never poll, and must never move a row under pointer or focus (groups.js keeps that).
 */
import { listenForActs } from './acts.js';
import { linkTo, usesToken } from './api.js';
import { h, icon, setAttribute, setText, svg } from './dom.js';
import { Widget } from './element.js';
import { Groups } from './groups.js';
import { t } from './i18n.js';
import { liveBanner, liveIndicator, signInAddress } from './live.js';
import { emptyPlace, skeleton } from './row.js';
import { everySecond, serverNow } from './time.js';
import { ended } from './words.js';

const SEEN_AFTER_MS = 1_000;
const NAME_EVERY_MS = 10_000;

export class TaskbellBell extends Widget {
  #center = null;
  #button = null;
  #panel = null;
  #groups = null;
  #shownAt = new Map();
  #part = {};
  #listening = null;
  #naming = 0;
  #namedAt = -Infinity;

  /** Whether the panel is open. */
  get open() {
    return Boolean(this.#panel && !this.#panel.hidden);
  }

  async connectedCallback() {
    const shared = await this.ready();
    if (!shared || this.#listening) return;
    this.#center = shared;
    if (!this.#button) this.shadowRoot.replaceChildren(this.#draw());
    this.#listening = new AbortController();
    const { signal } = this.#listening;
    document.addEventListener('pointerdown', (event) => this.open && !event.composedPath().includes(this) && this.#toggle(false), { signal });
    shared.connection.addEventListener('live', () => shared.connection.live === 'signed-out' && this.#signedOut(), { signal });
    this.untilGone(shared.tasks.subscribe((change) => this.#paint(change)), shared.tasks.subscribeCounts(() => this.#paintCounts()), everySecond(() => this.#markSeen()), shared.ends.follow(this, () => true, false), () => {
      this.#listening.abort();
      this.#listening = null;
    });
    this.#paintCounts();
    if (this.open) this.#paintRows({});
  }

  /** Opens the panel and puts the focus on a task. */
  async show(id) {
    this.#toggle(true);
    await this.#center?.connection.refresh().catch(() => {});
    this.#groups?.rows.get(id)?.focus();
  }

  #draw() {
    const part = this.#part;
    part.arc = svg('circle', { cx: 17, cy: 17, r: 16, pathLength: 100, 'stroke-dasharray': '0 100' });
    part.ring = svg('svg', { class: 'tb-ring', viewBox: '0 0 34 34', 'aria-hidden': 'true', 'data-ring': 'none' }, svg('circle', { cx: 17, cy: 17, r: 16 }), part.arc);
    part.badge = h('span', { class: 'tb-badge', part: 'badge', 'aria-hidden': 'true', hidden: true });
    this.#button = h('button', {
      class: 'tb-bell-button', part: 'button', type: 'button', 'aria-expanded': 'false', 'aria-controls': 'panel', 'aria-haspopup': 'dialog',
      onclick: () => this.#toggle(!this.open),
      onblur: () => this.#name(),
    }, part.ring, icon('bell'), part.badge);
    this.#panel = this.#drawPanel();
    return h('div', { class: 'tb-bell', onkeydown: (event) => event.key === 'Escape' && this.open && this.#toggle(false) }, this.#button, this.#panel);
  }

  #drawPanel() {
    const part = this.#part;
    const all = linkTo('notifications');
    const { connection } = this.#center;
    part.fresh = h('button', { class: 'tb-button', type: 'button', 'data-size': 'small', 'data-look': 'primary', onclick: () => this.#paintRows({ force: true }) });
    part.freshBar = h('div', { class: 'tb-fresh', hidden: true }, part.fresh);
    part.rows = h('div');
    part.empty = h('div', {}, skeleton());
    part.more = h('p', { class: 'tb-empty', hidden: true }, t('bell.more'));
    part.read = h('button', { class: 'tb-button', type: 'button', 'data-look': 'quiet', 'data-size': 'small', onclick: () => this.#markAllRead() }, icon('check'), t('bell.mark_read'));
    const taskOf = (element) => this.#center.tasks.get(element.closest('[data-task]')?.dataset.task);
    this.#groups = new Groups(part.rows, { titleOf: (id) => this.#center.tasks.get(id)?.title, onWaiting: (n) => this.#fresh(n) });
    listenForActs(part.rows, this.#center.tasks, taskOf, (id, text) => {
      this.#groups.note(id, text);
      this.#center.say?.(text);
    });
    part.rows.addEventListener('click', (event) => this.#read(event));
    // The panel has the focus when it opens: the first item is one key away.
    const onkeydown = (event) => event.target === this.#panel && this.#groups.page(event);
    return h('section', { class: 'tb-panel', onkeydown, id: 'panel', part: 'panel', role: 'dialog', 'aria-label': t('bell.panel'), tabindex: '-1', hidden: true },
      h('div', { class: 'tb-panel-head' }, h('h2', {}, t('bell.panel')), part.read,
        iconButton('refresh', t('bell.refresh'), (event) => this.#refresh(event.currentTarget)),
        iconButton('cancel', t('ask.close'), () => this.#toggle(false))),
      h('div', { class: 'tb-panel-main' }, part.freshBar, h('div', { class: 'tb-panel-body' }, part.rows, part.empty, part.more)),
      h('div', {}, liveBanner(connection)),
      h('div', { class: 'tb-panel-foot' }, h('a', { class: 'tb-link', ...all, hidden: !all.href }, t('bell.all')), liveIndicator(connection)));
  }

  #toggle(open) {
    if (open === this.open) return;
    const hadFocus = this.#panel.contains(this.shadowRoot.activeElement);
    this.#panel.hidden = !open;
    if (open) this.#aside();
    setAttribute(this.#button, 'aria-expanded', String(open));
    this.#shownAt.clear();
    if (open) {
      this.#paintRows({ force: true });
      this.#panel.focus({ preventScroll: true });
      this.#center.connection.refresh().catch((problem) => this.#failed(problem));
    } else {
      this.#groups.leave();
      if (hadFocus) this.#button.focus({ preventScroll: true });
    }
  }

  /** The panel opens towards the side that has room for it. */
  #aside() {
    this.#panel.removeAttribute('data-side');
    const { left, right } = this.#panel.getBoundingClientRect();
    if (left < 0 || right > document.documentElement.clientWidth) this.#panel.setAttribute('data-side', 'start');
  }

  #paint(change) {
    this.#paintCounts();
    if (this.open) this.#paintRows({ change });
  }

  #paintCounts() {
    const unseen = this.#center.tasks.counts?.unseen ?? 0;
    setAttribute(this.#part.badge, 'hidden', unseen === 0);
    setText(this.#part.badge, unseen > 99 ? '99+' : String(unseen));
    this.#name();
    this.#paintRing(this.#center.tasks.counts?.running ?? 0);
  }

  /**
   * "Notifications, 3 new, 2 running". A changed name of the element in focus is read aloud, so while the bell has the
   * focus its name changes at most once in 10 s; the newest one is never left out.
   */
  #name() {
    const { unseen = 0, running = 0 } = this.#center.tasks.counts ?? {};
    const name = [t('bell.label'), unseen ? t('bell.new', { n: unseen }) : null, running ? t('bell.running', { n: running }) : null].filter(Boolean).join(t('bell.and'));
    if (name === this.#button.getAttribute('aria-label')) return;
    clearTimeout(this.#naming);
    const wait = this.#namedAt + NAME_EVERY_MS - performance.now();
    if (wait > 0 && this.shadowRoot.activeElement === this.#button) {
      this.#naming = setTimeout(() => this.#name(), wait);
      return;
    }
    this.#namedAt = performance.now();
    setAttribute(this.#button, 'aria-label', name);
    setAttribute(this.#button, 'title', name);
  }

  /** One arc for the overall share when all totals are known; else a quiet turn. */
  #paintRing(running) {
    const shares = this.#center.tasks.mine().filter((task) => task.state === 'running').map((task) => task.progress?.percent);
    const known = shares.length > 0 && shares.every((share) => Number.isFinite(share));
    const share = known ? shares.reduce((sum, each) => sum + each, 0) / shares.length : 28;
    setAttribute(this.#part.ring, 'data-ring', running === 0 ? 'none' : known ? 'arc' : 'spin');
    setAttribute(this.#part.arc, 'stroke-dasharray', `${Math.max(2, share).toFixed(1)} 100`);
  }

  #paintRows({ force = false, change = null }) {
    const part = this.#part;
    const { counts, more } = this.#center.tasks;
    const tasks = this.#center.tasks.mine().filter((task) => !task.archived);
    const ids = change && !change.replaced && !change.aged ? change.ids : null;
    this.#groups.show(tasks, serverNow(), { force, ids, more });
    setAttribute(part.rows, 'hidden', tasks.length === 0);
    setAttribute(part.empty, 'hidden', tasks.length > 0);
    setAttribute(part.more, 'hidden', !more);
    setAttribute(part.read, 'hidden', !tasks.some((task) => ended(task) && task.read === false));
    if (counts !== null && tasks.length === 0 && !part.empty.querySelector('[data-none]')) {
      part.empty.replaceChildren(h('div', { 'data-none': true }, emptyPlace({ title: t('list.none.title'), text: t('list.none.text') })));
    }
  }

  /** Nothing was ever shown and nothing came: why, and what to do. */
  #failed(problem) {
    if (this.#center.tasks.counts !== null || this.#center.connection.live === 'signed-out') return;
    const again = h('button', { class: 'tb-button', type: 'button', onclick: (event) => this.#refresh(event.currentTarget) }, t('list.try_again'));
    const id = problem.requestId ? ` ${t('error.request', { id: problem.requestId })}` : '';
    this.#part.empty.replaceChildren(emptyPlace({ symbol: 'failed', title: t('list.failed.title'), text: `${problem.message}${id}`, action: again }));
  }

  /** Nothing of the person before stays, and the way back in is shown. */
  #signedOut() {
    this.#paintRows({ force: true });
    const link = usesToken() ? null : h('a', { class: 'tb-button', href: signInAddress() }, t('live.sign_in'));
    this.#part.empty.replaceChildren(emptyPlace({ symbol: 'user', title: t('live.signed-out'), text: t('error.signed_out'), action: link }));
  }

  #fresh(n) {
    setAttribute(this.#part.freshBar, 'hidden', n === 0);
    setText(this.#part.fresh, t('bell.fresh', { n }));
  }

  /**
   * Seen is what stood in the open panel for a second, a folded batch included: its row tells the ends of its members.
   * More unseen ends than a snapshot holds come after these were marked.
   */
  async #markSeen() {
    if (!this.open) return;
    const now = performance.now();
    const unseen = [...this.#groups.rows.keys()].map((id) => this.#center.tasks.get(id)).filter((task) => task && isNew(task));
    const ids = new Set(unseen.map(({ id }) => id));
    for (const id of this.#shownAt.keys()) if (!ids.has(id)) this.#shownAt.delete(id);
    for (const id of ids) if (!this.#shownAt.has(id)) this.#shownAt.set(id, now);
    const seen = [...ids].filter((id) => now - this.#shownAt.get(id) >= SEEN_AFTER_MS);
    for (const id of seen) this.#shownAt.set(id, Infinity);
    await this.#center.mark('seen', seen).catch(() => seen.forEach((id) => this.#shownAt.delete(id)));
    const { counts, more } = this.#center.tasks;
    if (seen.length > 0 && more && counts?.unseen > 0 && !this.#center.tasks.mine().some(isNew)) this.#center.connection.refresh().catch(() => {});
  }

  #read(event) {
    const id = event.target.closest?.('a[data-part="title"]')?.closest('[data-task]')?.dataset.task;
    const task = id && this.#center.tasks.get(id);
    if (task && ended(task) && task.read === false) this.#center.mark('read', [id]).catch(() => {});
  }

  async #markAllRead() {
    await this.#center.markAll('read').catch(() => {});
  }

  async #refresh(button) {
    button.setAttribute('data-pending', '');
    await this.#center.connection.refresh().catch((problem) => this.#failed(problem));
    button.removeAttribute('data-pending');
  }
}

/** An end that its owner has not seen. */
function isNew(task) {
  return ended(task) && task.seen === false;
}

function iconButton(symbol, label, onclick) {
  return h('button', { class: 'tb-button', type: 'button', 'data-look': 'quiet', 'data-size': 'icon', 'aria-label': label, title: label, onclick }, icon(symbol));
}

customElements.define('taskbell-bell', TaskbellBell);
