/**
 * What a person can do with a task: cancel, pause, resume, retry, delete.
 *
 * Buttons are drawn from the task's `can` and from nothing else. A question names the task and what stays. Nothing is
 * shown as done before the server confirmed it: until then the button is pending. A second click while one is under way
 * does nothing; a 409 fetches the task as it is now and says why.
 */
import { call } from './api.js';
import { ask } from './dialog.js';
import { h, icon } from './dom.js';
import { t } from './i18n.js';
import { amount } from './words.js';

/** The order of the buttons; what a server lists beyond them has no button here. */
const KNOWN = ['resume', 'retry', 'pause', 'cancel', 'delete'];
const inFlight = new Set();

/** The buttons for what the caller may do now. */
export function actButtons(task, { only = null, icons = false } = {}) {
  const may = new Set(task.can ?? []);
  return KNOWN.filter((name) => may.has(name) && (!only || only.includes(name))).map((name) =>
    h('button', {
      class: 'tb-button', type: 'button', 'data-size': icons ? null : 'small', 'data-do': name, 'data-look': name === 'delete' ? 'quiet' : null,
      'aria-label': t('do.named', { do: t(`do.${name}`), title: task.title }), title: name === 'delete' && !icons ? t('do.delete') : null,
    }, icons ? icon(name) : name === 'delete' ? icon('delete') : null, icons || name !== 'delete' ? t(`do.${name}`) : null));
}

/**
 * Makes the act buttons below `root` work. `tasks` is the store; `taskOf(element)` gives the task a button is for. Gives
 * the function that ends it.
 */
export function listenForActs(root, tasks, taskOf, onNote = () => {}) {
  const listen = (event) => {
    const button = event.composedPath()[0]?.closest?.('[data-do]');
    if (!button || !root.contains(button)) return;
    const task = taskOf(button);
    if (!task) return;
    event.preventDefault();
    act(button.dataset.do, task, tasks, button, (text) => onNote(task.id, text));
  };
  root.addEventListener('click', listen);
  return () => root.removeEventListener('click', listen);
}

async function act(name, task, tasks, button, note) {
  const key = `${name} ${task.id}`;
  if (inFlight.has(key)) return;
  inFlight.add(key);
  try {
    if (!(await confirmed(name, task, tasks, button))) return;
    button.setAttribute('data-pending', '');
    await send(name, task, tasks, button, note);
  } finally {
    inFlight.delete(key);
    button.removeAttribute('data-pending');
  }
}

async function send(name, task, tasks, button, note) {
  try {
    if (name === 'delete') {
      await call('DELETE', `api/v1/tasks/${task.id}`);
      tasks.remove(task.id, Infinity);
      return;
    }
    const answer = await call('POST', `api/v1/tasks/${task.id}/${name}`, {});
    tasks.merge([answer]);
    if (name === 'retry') button.dispatchEvent(new CustomEvent('taskbell:submitted', { bubbles: true, composed: true, detail: answer }));
  } catch (problem) {
    if (problem.status === 409) await refreshed(task.id, tasks);
    note(problem.status === 409 ? t('say.changed', { reason: problem.message }) : problem.message);
  }
}

async function refreshed(id, tasks) {
  await call('GET', `api/v1/tasks/${id}`).then((now) => tasks.merge([now]), () => {});
}

/** The question before an act that loses or repeats something. A pause asks nothing: it can be taken back. */
function confirmed(name, task, tasks, opener) {
  const { text, danger, no = 'ask.no' } = QUESTIONS[name] ?? {};
  const now = () => text((tasks.get(task.id) ?? task).progress ?? {});
  return !text || ask({ opener, title: t(`ask.${name}.title`, { title: task.title }), text: now, yes: t(`ask.${name}.yes`), no: t(no), danger });
}

/** What each question tells of what stays, goes on, or may be done twice. */
const QUESTIONS = {
  cancel: { danger: true, no: 'ask.cancel.no', text: (progress) => counted(progress, 'ask.cancel.kept', 'ask.cancel.none', 'ask.cancel.some') },
  resume: { text: (progress) => counted(progress, 'ask.resume.from', 'ask.resume.start', 'ask.resume.start') },
  retry: { text: (progress) => counted(progress, 'ask.retry.risk', 'ask.retry.clean', 'ask.retry.some') },
  delete: { danger: true, text: () => t('ask.delete.text') },
};

/** The sentence with a count, that for nothing done, or that for work that is not counted in things. */
function counted({ current = 0, unit }, some, none, uncounted) {
  if (!(current > 0)) return t(none);
  return unit === 'percent' ? t(uncounted) : t(some, { count: amount(current, unit) });
}
