/**
 * The task page: its live parts. The server writes the page; this keeps it true.
 *
 * Follows the task's own topic, so an operator sees another's task move too. Patches the parts of
 * templates/pages/task.html by their `data-part` names. Timeline and picture are read again only when the state changed or
 * the socket is back; in between they grow from what it brings. Opening the page marks an ended task as read. Must never
 * replace the page or move the focus.
 */
import { actButtons, listenForActs } from './acts.js';
import { call } from './api.js';
import { startChildren } from './children.js';
import { h, pageData, setAttribute, setIcon, setText } from './dom.js';
import { has, number, t, unitName } from './i18n.js';
import { TaskLog } from './log.js';
import { Picture } from './picture.js';
import { patchBar } from './row.js';
import { duration, everySecond, remainingSpan, serverNow, setTime, timeElement } from './time.js';
import { Timeline } from './timeline.js';
import { amount, describe, ended, stoppedFailed, warningText } from './words.js';

/** Takes over the page below `root`. */
export function startTask(root, shared) {
  const first = pageData('tb-task');
  const { tasks, connection } = shared;
  tasks.merge([first]);
  const named = [...root.querySelectorAll('[data-part]')].filter((element) => !element.closest('[data-task]'));
  const part = Object.fromEntries(named.map((element) => [element.dataset.part, element]));
  const log = new TaskLog(first.id);
  log.start().finally(() => {
    part.log.replaceChildren(log.element);
    log.arrived();
  });
  connection.subscribe(`task:${first.id}`, () => log.last);
  connection.addEventListener('log', ({ detail }) => detail.task === first.id && log.receive(detail));
  listenForActs(part.acts, tasks, () => tasks.get(first.id), (_, text) => {
    showNote(part.note, text);
    shared.say(text);
  });
  listenForCopy(root);
  const course = startCourse(part);
  const children = startChildren(part, first, shared);
  let shown = null;
  const paint = () => {
    const task = tasks.get(first.id) ?? shown ?? first;
    paintTask(part, task, serverNow(), (id) => tasks.get(id)?.title);
    course.paint(task);
    children.changed(task);
    if (shown && shown.revision !== task.revision && shown.state !== task.state) {
      course.read(task);
      settled(part, task, shared);
    }
    shown = task;
  };
  let cut = false;
  connection.addEventListener('live', () => {
    if (cut && connection.live === 'live') {
      course.read(shown);
      if (!part.children.hidden) children.read();
    }
    cut = connection.live !== 'live';
  });
  tasks.subscribe(({ ids, replaced }) => {
    children.paint();
    if (replaced && !tasks.get(first.id)) tasks.merge([shown ?? first]);
    else if (replaced || ids.has(first.id)) paint();
  });
  everySecond(paint);
  paint();
  if (ended(first) && !first.read) shared.mark('read', [first.id]).catch(() => {});
}

function showNote(note, text) {
  setText(note, text);
  setAttribute(note, 'hidden', !text);
}

/** Picture and timeline: `paint` grows them, `read` asks for what is stored; what is asked for while that runs is asked once more. */
function startCourse(part) {
  const stored = pageData('tb-course');
  const picture = new Picture(part, stored);
  const timeline = new Timeline(part.timeline, part.attempts, stored);
  let reading = false;
  let again = null;
  const paint = (task) => {
    picture.paint(task, serverNow());
    timeline.paint(task, serverNow());
  };
  const read = async (task) => {
    if (reading) {
      again = task;
      return;
    }
    reading = true;
    again = null;
    const of = (what) => call('GET', `api/v1/tasks/${task.id}/${what}`).catch(() => null);
    const [events, points] = await Promise.all([of(`events?after=${timeline.earlier}`), of('progress')]);
    reading = false;
    picture.take({ events: events?.items, points: points?.items });
    if (events) timeline.take(events.items, again ?? task, serverNow());
    if (again) await read(again);
  };
  return { paint, read };
}

/** After a change of state: the parts that only the detail has. */
async function settled(part, task, shared) {
  showNote(part.note, '');
  if (!ended(task)) return;
  const detail = await call('GET', `api/v1/tasks/${task.id}`).catch(() => null);
  if (detail) paintResult(part, detail);
  if (!document.hidden) shared.mark('read', [task.id]).catch(() => {});
}

function paintTask(part, task, now, titleOf) {
  const says = describe(task, now, titleOf);
  for (const element of [part.head, part.progress, part.picture]) {
    setAttribute(element, 'data-tone', says.tone);
    setAttribute(element, 'data-kind', says.kind);
  }
  setIcon(part.icon, says.icon);
  setText(part.word, says.word);
  setText(part.message, task.state === 'failed' ? '' : says.message);
  setText(part.big, says.percent || bigCount(task));
  setText(part.count, says.percent ? says.count : '');
  patchBar(part.bar, task, says);
  setText(part.eta, says.eta);
  setText(part['at-label'], says.at ? says.atLabel : '');
  setTime(part.at, says.at);
  paintFacts(part, task, now);
  paintActs(part, task);
  paintError(part, task);
}

function bigCount({ progress }) {
  return progress.current > 0 || progress.total === 0 ? amount(progress.current, progress.unit) : '';
}

function paintFacts(part, task, now) {
  const { progress } = task;
  const rate = progress.ratePerSecond;
  const moving = !ended(task) && Number.isFinite(rate) && rate > 0;
  setText(part.rate, moving ? t('task.rate.value', { n: rate >= 10 ? Math.round(rate) : rate, unit: unitName(progress.unit, 2) }) : '–');
  const began = task.startedAt ? Date.parse(task.startedAt) : null;
  const until = task.finishedAt ? Date.parse(task.finishedAt) : now;
  setText(part['elapsed-label'], t(ended(task) ? 'task.took' : 'task.elapsed'));
  setText(part.elapsed, began ? duration(until - began) : '–');
  setTime(part['started-at'], task.startedAt);
  const eta = progress.eta ?? {};
  const estimated = eta.state === 'estimated' && Date.parse(eta.finishAt) > now;
  setText(part['eta-fact'], estimated ? remainingText(eta, now) : eta.state === 'estimating' || eta.state === 'unknown' ? t('eta.estimating') : '–');
  setText(part.confidence, estimated ? `${t(`eta.confidence.${eta.confidence}`)} · ${t(`eta.basis.${eta.basis}`)}` : '');
  setText(part.attempt, t('task.attempt.value', { n: task.attempt, max: task.maxAttempts }));
  setText(part.chunks, number(task.chunks ?? 0));
  detail(part, 'warnings', (task.warnings ?? []).map(warningText).join(', '));
  const rows = ['ok', 'skipped', 'failed'].map((name) => [task.rows?.[name] ?? 0, t(`task.rows.${name}`)]);
  detail(part, 'rows', rows.some(([n]) => n > 0) ? rows.map(([n, word]) => `${number(n)} ${word}`).join(', ') : '');
}

/** A line of the details that is there only while it says something. */
function detail(part, name, text) {
  setText(part[name], text);
  for (const element of [part[name], part[`${name}-label`]]) setAttribute(element, 'hidden', !text);
}

function remainingText(eta, now) {
  const seconds = (Date.parse(eta.finishAt) - now) / 1000;
  return seconds < 60 ? t('eta.under') : remainingSpan(seconds);
}

function paintActs(part, task) {
  const can = (task.can ?? []).join(' ');
  if (part.acts.dataset.can === can) return;
  part.acts.dataset.can = can;
  part.acts.replaceChildren(...actButtons(task, { icons: true }));
}

function paintError(part, task) {
  const error = task.state === 'failed' || task.waiting?.reason === 'retry' ? task.error : null;
  setAttribute(part.error, 'hidden', !error);
  if (!error) return;
  const kind = `error.kind.${error.kind}`;
  setText(part['error-kind'], has(kind) ? t(kind) : error.kind);
  setText(part['error-message'], error.message);
  setText(part['error-code'], error.code ?? '');
  setText(part['error-stopped'], stoppedFailed(task.progress));
  setText(part['error-next'], task.can?.includes('resume') ? t('error.next') : '');
}

function paintResult(part, task) {
  setAttribute(part['result-card'], 'hidden', !task.result && !(task.artifacts?.length > 0));
  setText(part['result-title'], t(task.state === 'succeeded' && !task.rows?.failed ? 'task.result' : 'task.result.partial'));
  setText(part.result, task.result ? JSON.stringify(task.result, null, 2) : '');
  setAttribute(part.result, 'hidden', !task.result);
  part.files.replaceChildren(...(task.artifacts ?? []).map((file) => h('li', {},
    h('a', { class: 'tb-link', href: `/api/v1/artifacts/${encodeURIComponent(file.id)}`, download: true }, file.name),
    file.expiresAt ? h('span', { class: 'tb-help' }, t('task.expires'), ' ', timeElement(file.expiresAt)) : null)));
}

function listenForCopy(root) {
  for (const button of root.querySelectorAll('[data-copy]')) {
    button.hidden = !navigator.clipboard;
    button.addEventListener('click', async () => {
      await navigator.clipboard.writeText(button.dataset.copy);
      const label = button.querySelector('span');
      setText(label, t('task.copied'));
      setTimeout(() => setText(label, t('task.copy')), 2000);
    });
  }
}
