/**
 * The buttons page: a click opens the action's form, a submit becomes a task row in the card, in place.
 *
 * Takes over the plain forms of the page. A form that is on its way takes no second click; a replay and a skip are told as
 * what they are, with the task that is already there. Must never show a task before the server accepted it.
 */
import { call } from './api.js';
import { makeDialog, openDialog } from './dialog.js';
import { h, pageData, setAttribute, setText } from './dom.js';
import { makeForm } from './form.js';
import { localized, t } from './i18n.js';
import { listenForActs } from './acts.js';
import { makeRow, patchRow } from './row.js';
import { howTaken } from './taken.js';
import { everySecond, serverNow } from './time.js';
import { ended } from './words.js';

const MOST_ROWS = 3;

/** Takes over the cards below `root`. */
export function startButtons(root, shared) {
  const actions = new Map((pageData('tb-actions') ?? []).map((action) => [action.key, action]));
  const cards = new Map();
  for (const element of root.querySelectorAll('[data-action]')) {
    const action = actions.get(element.dataset.action);
    if (action) cards.set(action.key, new Card(element, action, shared));
  }
  const paint = () => {
    const open = Map.groupBy(shared.tasks.list().filter((task) => !ended(task)), (task) => task.action);
    for (const [key, card] of cards) card.paint((open.get(key) ?? []).slice(0, MOST_ROWS));
  };
  shared.tasks.subscribe(paint);
  everySecond(paint);
}

/** One action: its button, and the rows of its tasks that are under way or were started here. */
class Card {
  #rows = new Map();

  constructor(element, action, shared) {
    this.action = action;
    this.shared = shared;
    this.place = element.querySelector('[data-part="tasks"]');
    this.note = element.querySelector('[data-part="note"]');
    const label = t(hasFields(action) ? 'action.open' : 'action.start');
    this.button = h('button', { class: 'tb-button', type: 'button', 'aria-label': `${t('action.start')}: ${localized(action.title)}`, onclick: () => this.#open() }, label);
    element.querySelector('[data-part="plain"]').replaceWith(this.button);
    listenForActs(this.place, shared.tasks, (inside) => shared.tasks.get(inside.closest('[data-task]')?.dataset.task), (_, text) => this.#tell(text));
  }

  /** Puts a task's row on top; one that is there stays where it is. */
  add(task) {
    if (this.#rows.has(task.id)) return;
    const row = makeRow(task, serverNow());
    this.#rows.set(task.id, row);
    this.place.prepend(row);
    setAttribute(this.place, 'hidden', false);
    while (this.place.childElementCount > MOST_ROWS) {
      this.#rows.delete(this.place.lastElementChild.dataset.task);
      this.place.lastElementChild.remove();
    }
  }

  /** Brings the rows to what their tasks say now; `open` are the newest that are under way, newest first. */
  paint(open) {
    const { tasks } = this.shared;
    for (const task of open.toReversed()) this.add(task);
    for (const [id, row] of this.#rows) {
      const task = tasks.get(id);
      if (task) patchRow(row, task, serverNow(), { titleOf: (other) => tasks.get(other)?.title });
    }
  }

  #open() {
    const dialog = makeDialog({ title: localized(this.action.title), lead: localized(this.action.description) });
    const form = makeForm(this.action.params, {
      submitLabel: t('form.start'),
      onClose: () => dialog.close(),
      onSubmit: async (params) => {
        const answer = await call('POST', 'api/v1/tasks', { action: this.action.key, params });
        dialog.close();
        this.#accepted(answer);
      },
    });
    dialog.append(form.element);
    openDialog(dialog, this.button);
    form.first.focus();
  }

  #accepted(answer) {
    this.shared.tasks.merge([answer]);
    this.add(this.shared.tasks.get(answer.id) ?? answer);
    this.#tell(howTaken(answer));
    document.dispatchEvent(new CustomEvent('taskbell:submitted', { detail: answer }));
  }

  #tell(text) {
    setText(this.note, text);
    setAttribute(this.note, 'hidden', !text);
    if (text) this.shared.say(text);
  }
}

function hasFields(action) {
  return Object.keys(action.params?.properties ?? {}).length > 0;
}
