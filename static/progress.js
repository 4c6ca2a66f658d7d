/**
 * `<taskbell-progress task=ID>`: the live row of one task, for any place in a page.
 *
 * Also `record="TYPE:ID"`: the newest task of a business record, and each newer one when it comes. Follows the topics of
 * its task and record, so it works for tasks that the caller may see but does not own. Both attributes may change at any
 * time. Tells its page by `taskbell:ended` (see ends.js). Must never show a task of a target it no longer has.
 */
import { listenForActs } from './acts.js';
import { call } from './api.js';
import { h } from './dom.js';
import { TargetedWidget, failure } from './element.js';
import { t } from './i18n.js';
import { emptyPlace, makeRow, patchRow, skeleton } from './row.js';
import { everySecond, serverNow } from './time.js';
import { ended } from './words.js';

export class TaskbellProgress extends TargetedWidget {
  static observedAttributes = ['task', 'record'];

  #frame = h('div', { class: 'tb-rows', part: 'rows' });
  #row = null;
  #id = null;

  async begin(shared, current) {
    this.#id = null;
    this.#show(skeleton());
    this.shadowRoot.replaceChildren(this.#frame);
    const target = this.#target();
    try {
      const task = await target.find();
      if (!current()) return;
      if (task) shared.tasks.merge([task]);
      this.#id = task?.id ?? null;
      if (!task) this.#show(emptyPlace({ title: t('record.none'), text: '' }));
    } catch (problem) {
      if (!current()) return;
      if (problem.status !== 404) return this.#show(failure(problem, () => this.start()));
      this.#show(emptyPlace({ title: t('error.page.404'), text: t('error.page.404.text'), symbol: 'unknown' }));
    }
    const paint = () => this.#paint(target);
    this.untilGone(shared.tasks.subscribe(paint), everySecond(paint), shared.ends.follow(this, (task) => task.id === this.#id),
      listenForActs(this.#frame, shared.tasks, () => shared.tasks.get(this.#id)));
    if (target.topic) this.untilGone(shared.connection.subscribe(target.topic));
    this.#follow();
    paint();
  }

  /** How the task is found, its record's topic, and which tasks take its place. */
  #target() {
    const id = this.getAttribute('task');
    if (id) return { find: () => call('GET', `api/v1/tasks/${encodeURIComponent(id)}`), replaces: () => false };
    const [type, ...rest] = (this.getAttribute('record') ?? '').split(':');
    const record = rest.join(':');
    return {
      topic: `record:${type}:${record}`,
      find: async () => (await call('GET', `api/v1/records/${encodeURIComponent(type)}/${encodeURIComponent(record)}/tasks?limit=1`)).items[0],
      replaces: (task) => task.record?.type === type && task.record.id === record,
    };
  }

  #follow() {
    const task = this.shared.tasks.get(this.#id);
    if (task && !ended(task)) this.untilGone(this.shared.connection.subscribe(`task:${task.id}`));
  }

  #show(...nodes) {
    this.#row = null;
    this.#frame.replaceChildren(...nodes);
  }

  #paint(target) {
    const { tasks } = this.shared;
    const newest = tasks.list().find(target.replaces);
    const shown = tasks.get(this.#id);
    if (newest && newest.id !== this.#id && !(shown?.createdAt > newest.createdAt)) {
      this.#id = newest.id;
      this.#row = null;
      this.#follow();
    }
    const task = tasks.get(this.#id);
    // Deleted, or no longer the caller's to see: looked for anew.
    if (!task) return void (this.#row && this.start());
    if (!this.#row) this.#show(makeRow(task, serverNow()));
    this.#row ??= this.#frame.firstElementChild;
    patchRow(this.#row, task, serverNow());
  }
}

customElements.define('taskbell-progress', TaskbellProgress);
