/**
 * `<taskbell-progress task=ID>`: the live row of one task, for any place in a page.
 *
 * Also `record="TYPE:ID"`: the newest task of a business record. Follows the topic of its task, so it works for tasks
 * that the caller may see but does not own. Tells its page by a `taskbell:ended` event (bubbling, with the task) when the
 * task ends before its eyes. Must never tell an end that was there at load.
 */
import { listenForActs } from './acts.js';
import { call } from './api.js';
import { center } from './center.js';
import { h } from './dom.js';
import { styledRoot } from './element.js';
import { t } from './i18n.js';
import { emptyPlace, makeRow, patchRow, skeleton } from './row.js';
import { everySecond, serverNow } from './time.js';
import { ended } from './words.js';

export class TaskbellProgress extends HTMLElement {
  #row = null;
  #ends = [];
  #wasEnded = null;

  async connectedCallback() {
    const shared = await center({ url: this.getAttribute('url') ?? undefined, getToken: this.getToken });
    const root = await styledRoot(this);
    const frame = h('div', { class: 'tb-rows' }, skeleton());
    root.replaceChildren(frame);
    const task = await this.#find().catch(() => null);
    if (!task || !this.isConnected) {
      frame.replaceChildren(emptyPlace({ title: t('error.page.404'), text: t('error.page.404.text'), symbol: 'unknown' }));
      return;
    }
    shared.tasks.merge([task]);
    this.#wasEnded = ended(task);
    this.#row = makeRow(shared.tasks.get(task.id) ?? task, serverNow());
    frame.replaceChildren(this.#row);
    listenForActs(frame, shared.tasks, () => shared.tasks.get(task.id));
    const paint = () => this.#paint(shared.tasks.get(task.id));
    this.#ends = [shared.tasks.subscribe(paint), shared.connection.subscribe(`task:${task.id}`), everySecond(paint)];
  }

  disconnectedCallback() {
    for (const end of this.#ends) end();
    this.#ends = [];
  }

  async #find() {
    const id = this.getAttribute('task');
    if (id) return call('GET', `api/v1/tasks/${encodeURIComponent(id)}`);
    const [type, ...rest] = (this.getAttribute('record') ?? '').split(':');
    const { items } = await call('GET', `api/v1/records/${encodeURIComponent(type)}/${encodeURIComponent(rest.join(':'))}/tasks?limit=1`);
    return items[0] ?? null;
  }

  #paint(task) {
    if (!task || !this.#row) return;
    patchRow(this.#row, task, serverNow());
    if (ended(task) && !this.#wasEnded) this.dispatchEvent(new CustomEvent('taskbell:ended', { bubbles: true, composed: true, detail: task }));
    this.#wasEnded = ended(task);
  }
}

customElements.define('taskbell-progress', TaskbellProgress);
