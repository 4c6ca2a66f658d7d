/**
 * `<taskbell-button action= record-type= record-id= params=>`: one action as a button, for any place in a page.
 *
 * Its label is the action's title (or what the page wrote inside the element). A click submits; where the action needs
 * what `params` does not give, it asks in a dialog first. The task then stands as a live row in the button's place until
 * it ends, and the row stays below the button after that; one that is already under way for the record stands there from
 * the start. Each click has an idempotency key of its own, kept while that click is tried again, so that neither a second
 * click nor a lost answer makes a second task. Tells its page by `taskbell:submitted`, and by `taskbell:ended` for the
 * task it shows. Must never show a task before the server accepted it.
 */
import { listenForActs } from './acts.js';
import { call } from './api.js';
import { makeDialog, openDialog } from './dialog.js';
import { h, setAttribute, setText } from './dom.js';
import { TargetedWidget, failure } from './element.js';
import { makeForm } from './form.js';
import { localized, t } from './i18n.js';
import { makeRow, patchRow } from './row.js';
import { howTaken } from './taken.js';
import { everySecond, serverNow } from './time.js';
import { ended } from './words.js';

/** A connection has 32 topics. What the caller starts is told without one; a longer list of buttons does not see others start. */
const MOST_RECORDS = 16;

let listing = null;
let followed = 0;

/** The actions that the caller may start, asked once for all buttons of a page. */
function listed() {
  listing ??= call('GET', 'api/v1/actions').then(({ items }) => items).catch((problem) => {
    listing = null;
    throw problem;
  });
  return listing;
}

export class TaskbellButton extends TargetedWidget {
  static observedAttributes = ['action', 'record-type', 'record-id', 'params'];

  #part = null;
  #row = null;
  #id = null;
  #click = null;
  #internals = this.attachInternals();

  async begin(shared, current) {
    this.#draw();
    const record = this.#record();
    try {
      const [actions, task] = await Promise.all([listed(), record && this.#underWay(record)]);
      if (!current()) return;
      this.#take(actions, task);
    } catch (problem) {
      if (!current()) return;
      this.#refuse('');
      this.#part.note.replaceChildren(failure(problem, () => this.start()));
      return;
    }
    const paint = () => this.#paint(record);
    this.untilGone(shared.tasks.subscribe(paint), everySecond(paint), shared.ends.follow(this, (each) => this.#isOurs(each)));
    if (record && followed < MOST_RECORDS) {
      followed += 1;
      this.untilGone(shared.connection.subscribe(`record:${record.type}:${record.id}`), () => (followed -= 1));
    }
    paint();
  }

  #take(actions, task) {
    const action = actions.find((each) => each.key === this.getAttribute('action'));
    const params = this.#params();
    this.action = action;
    this.#part.label.firstElementChild.textContent = action ? localized(action.title) : (this.getAttribute('action') ?? '');
    if (!action) this.#refuse(t('button.denied'));
    else if (!params) this.#refuse(t('button.params'));
    else this.#refuse(null);
    if (task) this.#show(task);
  }

  #record() {
    const [type, id] = [this.getAttribute('record-type'), this.getAttribute('record-id')];
    return type && id ? { type, id } : null;
  }

  /** What the attribute gives; null when it is no JSON object. */
  #params() {
    try {
      const given = JSON.parse(this.getAttribute('params') || '{}');
      return given !== null && typeof given === 'object' && !Array.isArray(given) ? given : null;
    } catch {
      return null;
    }
  }

  async #underWay({ type, id }) {
    const { items } = await call('GET', `api/v1/records/${encodeURIComponent(type)}/${encodeURIComponent(id)}/tasks?limit=20`);
    return items.find((task) => task.action === this.getAttribute('action') && !ended(task));
  }

  #draw() {
    const part = {
      label: h('slot', {}, h('span')),
      note: h('div', { id: 'note', class: 'tb-note', part: 'note', role: 'status' }),
      rows: h('div', { class: 'tb-rows', part: 'rows', hidden: true }),
    };
    part.button = h('button', { class: 'tb-button', part: 'button', type: 'button', 'data-look': this.getAttribute('look'), 'aria-disabled': 'true', 'aria-describedby': 'note', onclick: () => this.#clicked() }, part.label);
    this.#part = part;
    this.#id = this.#row = null;
    this.#internals.states.delete('row');
    this.shadowRoot.replaceChildren(h('div', { class: 'tb-start' }, part.button, part.note, part.rows));
    listenForActs(part.rows, this.shared.tasks, () => this.shared.tasks.get(this.#id), (_, text) => setText(part.note, text));
  }

  /** Not now, and why; with null it can be clicked. */
  #refuse(reason) {
    setAttribute(this.#part.button, 'aria-disabled', reason === null ? null : 'true');
    setAttribute(this.#part.button, 'title', reason);
    setText(this.#part.note, reason);
  }

  #clicked() {
    const { button } = this.#part;
    if (button.getAttribute('aria-disabled') === 'true' || button.hasAttribute('data-pending')) return;
    const { action } = this;
    const given = this.#params();
    this.#click = newKey();
    const missing = (action.params?.required ?? []).some((name) => !Object.hasOwn(given, name));
    if (missing) return this.#ask(action, given);
    button.setAttribute('data-pending', '');
    this.#submit(given)
      .catch((problem) => {
        const again = problem.status === 0 ? () => this.#again(given) : null;
        this.#part.note.replaceChildren(failure(problem, again));
      })
      .finally(() => button.removeAttribute('data-pending'));
  }

  /** The same click once more: its key finds the task if the server has it already. */
  async #again(given) {
    setText(this.#part.note, '');
    await this.#submit(given).catch((problem) => this.#part.note.replaceChildren(failure(problem, problem.status === 0 ? () => this.#again(given) : null)));
  }

  /** Asks for what `params` leaves open. */
  #ask(action, given) {
    const open = Object.entries(action.params.properties ?? {}).filter(([name]) => !Object.hasOwn(given, name));
    const dialog = makeDialog({ title: localized(action.title), lead: localized(action.description) });
    const form = makeForm({ ...action.params, properties: Object.fromEntries(open) }, {
      submitLabel: t('form.start'),
      onClose: () => dialog.close(),
      onSubmit: async (params) => {
        await this.#submit({ ...given, ...params });
        dialog.close();
      },
    });
    dialog.append(form.element);
    openDialog(dialog, this.#part.button);
    form.first.focus();
  }

  async #submit(params) {
    const answer = await call('POST', 'api/v1/tasks', { action: this.action.key, params, record: this.#record() ?? undefined, idempotencyKey: this.#click });
    this.shared.tasks.merge([answer]);
    this.#show(answer);
    setText(this.#part.note, howTaken(answer));
    this.tell('taskbell:submitted', answer);
  }

  /** Whether an end is the button's to tell: of the task it shows, or of the one that its click is just making. */
  #isOurs(task) {
    return task.id === this.#id || (this.#click !== null && task.idempotencyKey === this.#click);
  }

  #show(task) {
    if (this.#id !== task.id) this.untilGone(this.shared.connection.subscribe(`task:${task.id}`));
    const focused = this.#part.button === this.shadowRoot.activeElement || this.shadowRoot.querySelector('dialog[open]');
    this.#id = task.id;
    this.#row = makeRow(this.shared.tasks.get(task.id) ?? task, serverNow());
    this.#part.rows.replaceChildren(this.#row);
    setAttribute(this.#part.rows, 'hidden', false);
    this.#internals.states.add('row');
    this.#place(task);
    if (focused) this.#row.focus({ preventScroll: true });
  }

  /** While its task is under way the row stands in the button's place. */
  #place(task) {
    const away = !ended(task);
    const focused = away !== this.#part.button.hidden && this.#row.contains(this.shadowRoot.activeElement);
    setAttribute(this.#part.button, 'hidden', away);
    if (focused && !away) this.#row.focus({ preventScroll: true });
  }

  /** Its task was deleted: the button stands alone again. */
  #clear() {
    if (!this.#row) return;
    this.#id = this.#row = null;
    this.#internals.states.delete('row');
    setAttribute(this.#part.rows, 'hidden', true);
    setAttribute(this.#part.button, 'hidden', false);
    this.#part.rows.replaceChildren();
    this.#part.button.focus({ preventScroll: true });
  }

  #paint(record) {
    const { tasks } = this.shared;
    const started = record && tasks.list().find((task) => !ended(task) && task.action === this.action?.key && task.record?.type === record.type && task.record.id === record.id);
    const shown = tasks.get(this.#id);
    if (started && started.id !== this.#id && (!shown || ended(shown))) return this.#show(started);
    if (!shown) return this.#clear();
    patchRow(this.#row, shown, serverNow(), { titleOf: (id) => tasks.get(id)?.title });
    this.#place(shown);
  }
}

/** A key that no other click has. Random bytes and no randomUUID, which a page on plain http does not have. */
function newKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

customElements.define('taskbell-button', TaskbellButton);
