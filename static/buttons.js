/**
 * The buttons page: a click opens the action's form, a submit becomes a task row in the card, in place.
 *
 * Takes over the plain forms of the page; each card keeps its own key, so a second click while the first is on its way
 * has no second effect. A replay and a skip are told as what they are, with the task that is already there. Must never
 * show a task before the server accepted it.
 */
import { call } from './api.js';
import { makeDialog, openDialog } from './dialog.js';
import { h, pageData, setAttribute } from './dom.js';
import { makeForm } from './form.js';
import { localized, t } from './i18n.js';
import { listenForActs } from './acts.js';
import { makeRow, patchRow } from './row.js';
import { ago, everySecond, serverNow } from './time.js';

/** Takes over the cards below `root`. */
export function startButtons(root, shared) {
  const actions = new Map((pageData('tb-actions') ?? []).map((action) => [action.key, action]));
  const rows = new Map();
  for (const card of root.querySelectorAll('[data-action]')) {
    const action = actions.get(card.dataset.action);
    if (action) takeOver(card, action, shared, rows);
  }
  const paint = () => {
    for (const [id, row] of rows) {
      const task = shared.tasks.get(id);
      if (task) patchRow(row, task, serverNow(), { titleOf: (other) => shared.tasks.get(other)?.title });
    }
  };
  shared.tasks.subscribe(paint);
  everySecond(paint);
}

function takeOver(card, action, shared, rows) {
  const place = card.querySelector('[data-part="tasks"]');
  const note = card.querySelector('[data-part="note"]');
  const button = h('button', { class: 'tb-button', type: 'button' }, hasFields(action) ? t('action.open') : t('action.start'));
  button.setAttribute('aria-label', `${t('action.start')}: ${localized(action.title)}`);
  card.querySelector('[data-part="plain"]').replaceWith(button);
  listenForActs(place, shared.tasks, (element) => shared.tasks.get(element.closest('[data-task]')?.dataset.task));
  const accepted = (answer) => {
    shared.tasks.merge([answer]);
    const row = rows.get(answer.id) ?? makeRow(shared.tasks.get(answer.id) ?? answer, serverNow());
    rows.set(answer.id, row);
    place.prepend(row);
    setAttribute(place, 'hidden', false);
    while (place.childElementCount > 3) {
      rows.delete(place.lastElementChild.dataset.task);
      place.lastElementChild.remove();
    }
    tellHow(note, answer, shared);
    document.dispatchEvent(new CustomEvent('taskbell:submitted', { detail: answer }));
  };
  button.addEventListener('click', () => openForm(action, button, accepted));
}

function hasFields(action) {
  return Object.keys(action.params?.properties ?? {}).length > 0;
}

function openForm(action, opener, accepted) {
  const dialog = makeDialog({ title: localized(action.title), lead: localized(action.description) });
  const form = makeForm(action.params, {
    submitLabel: t('form.start'),
    onClose: () => dialog.close(),
    onSubmit: async (params) => {
      const answer = await call('POST', 'api/v1/tasks', { action: action.key, params });
      dialog.close();
      accepted(answer);
    },
  });
  dialog.append(form.element);
  openDialog(dialog, opener);
  form.first.focus();
}

/** A replay or a skip says so; a new task needs no words, it is there. */
function tellHow(note, answer, shared) {
  let text = '';
  if (answer.skipped) text = t('action.skipped');
  else if (answer.replayed) text = answer.replay?.startedBy ? t('action.replayed', { user: answer.replay.startedBy, ago: ago(answer.replay.createdAt) }) : t('action.replayed.now');
  note.textContent = text;
  setAttribute(note, 'hidden', !text);
  if (text) shared.say(text);
}
