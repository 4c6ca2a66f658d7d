/**
 * The picture on the task's page: takes over what the server drew (templates/parts/picture.html) and keeps it live.
 *
 * Adds points from what the socket brings, by the server's own rule of when one is due (src/core/picture.rs), and takes the
 * stored ones again when somebody read them. At most 120 points are kept; of more every second one goes. Writes attributes
 * only, since the policy forbids styles. Must never read by itself.
 */
import { h, setAttribute, setText, svg } from './dom.js';
import { number, t } from './i18n.js';
import { draw } from './plot.js';
import { full, setTime, timeElement } from './time.js';
import { amount, count, ended } from './words.js';

const MOST = 120;
const FIRST_MS = 2_000;
const CELLS = 100;
const MARKS = 60;
const TURNS = ['retry', 'takeover', 'pause', 'revised'];
const AT_WORK = new Set(['running', 'pausing', 'cancelling']);

export class Picture {
  #part;
  #lines;
  #points;
  #events;

  /** Over the `data-part` elements of the page, with the points and the timeline that it was written with. */
  constructor(part, { points, events }) {
    this.#part = part;
    this.#lines = Object.fromEntries([...part.plot.querySelectorAll('[data-line]')].map((element) => [element.dataset.line, element]));
    this.#points = points.map(readPoint);
    this.#events = events;
    part['plot-table'].addEventListener('toggle', () => this.#paintTable());
  }

  /** Takes what somebody read anew. */
  take({ points, events }) {
    if (points) this.#points = points.map(readPoint);
    if (events) this.#events = events;
  }

  /** Draws how the task stands at the server's `now`. */
  paint(task, now) {
    this.#add(task);
    const scene = this.#scene(task, now);
    const lines = scene ? draw(scene) : null;
    setAttribute(this.#part.plot, 'hidden', !lines);
    setAttribute(this.#part['plot-none'], 'hidden', Boolean(lines));
    setText(this.#part['plot-none'], t(ended(task) ? 'picture.none.ended' : 'picture.none'));
    if (!lines) return;
    for (const name of ['done', 'ground', 'told', 'ahead', 'total', 'tip']) setAttribute(this.#lines[name], 'd', lines[name]);
    patchList(this.#lines.rests, lines.rests, () => svg('rect', { y: 10, height: 220 }), (rect, [x, width]) => {
      setAttribute(rect, 'x', x);
      setAttribute(rect, 'width', width);
    });
    const marks = lines.turns.flatMap(([turn, x]) => [[turn, `M${x} 10V230`, false], [turn, `M${x} 10h0`, true]]);
    patchList(this.#lines.turns, marks, () => svg('path'), (path, [turn, d, head]) => {
      setAttribute(path, 'data-turn', turn);
      setAttribute(path, 'data-head', head);
      setAttribute(path, 'd', d);
    });
    this.#paintWords(task, scene, lines);
  }

  /** A point for what the task says, if one is due; shortly before the end of its stretch the newest stands for it. */
  #add(task) {
    const at = Date.parse(task.progress?.updatedAt ?? '');
    const start = Date.parse(task.startedAt ?? '');
    const last = this.#points.at(-1);
    if (!(at - start >= FIRST_MS) || (last && at <= last.at)) return;
    let length = FIRST_MS;
    while ((at - start) / length >= CELLS) length *= 2;
    const cell = (instant) => Math.floor((instant - start) / length);
    if (last && cell(at) === cell(last.at)) return;
    this.#points.push(pointOf(task, at));
    if (this.#points.length > MOST) this.#points = this.#points.filter((_, n) => n % 2 === 0 || n === this.#points.length - 1);
  }

  #scene(task, now) {
    const last = this.#points.at(-1);
    if (!last || !task.startedAt) return null;
    const start = Date.parse(task.startedAt);
    const over = ended(task);
    const until = Math.max(task.finishedAt ? Date.parse(task.finishedAt) : Math.round(now), last.at);
    const points = !over || until > last.at ? [...this.#points, pointOf(task, until)] : this.#points;
    const turns = this.#events.map((event) => [turnOf(event), Date.parse(event.at)]).filter(([turn]) => turn);
    const idle = rests(this.#events, start, over ? null : until);
    return { start, until, ended: over, points: flattened(points, idle), rests: idle, turns: turns.slice(-MARKS) };
  }

  #paintWords(task, scene, lines) {
    const [top, middle, ground] = this.#part.plot.querySelectorAll('.plot-y > span');
    for (const [element, n] of [[top, lines.top], [middle, Math.trunc(lines.top / 2)], [ground, 0]]) setText(element, number(n));
    const [left, half, right] = this.#part.plot.querySelectorAll('.plot-x > time');
    for (const [element, at] of [[left, scene.start], [half, scene.start + Math.trunc((lines.right - scene.start) / 2)], [right, lines.right]]) setTime(element, at);
    const counts = TURNS.map((turn) => [turn, scene.turns.filter(([each]) => each === turn).length]).filter(([, n]) => n > 0)
      .map(([turn, n]) => [turn, t(`picture.${turn}`, { n })]);
    const legend = [['done', t('picture.done')],
      lines.told || lines.ahead ? ['told', t('picture.told')] : null,
      lines.rests.length > 0 ? ['rest', t('picture.rest')] : null, ...counts].filter(Boolean);
    patchList(this.#part.legend, legend, () => h('li'), (item, [kind, text]) => {
      setAttribute(item, 'data-kind', kind);
      setText(item, text);
    });
    const { lowAt, highAt } = scene.points.at(-1);
    const { progress } = task;
    const said = [t('picture.say', { from: full(scene.start), to: full(scene.until), count: count(progress) || amount(progress.current, progress.unit) }),
      !scene.ended && lowAt !== null ? t('picture.say.told', { low: full(lowAt), high: full(highAt) }) : null, ...counts.map(([, text]) => text)];
    setAttribute(this.#part.plot.querySelector('svg'), 'aria-label', said.filter(Boolean).join(' · '));
    this.#paintTable();
  }

  /** The table is written while somebody has it open. */
  #paintTable() {
    if (!this.#part['plot-table'].open) return;
    const cell = (content) => h('td', {}, content);
    const body = this.#part['plot-table'].querySelector('tbody');
    const shown = body.childElementCount;
    const rows = this.#points.map(({ at, current, total, lowAt, highAt }) => h('tr', {},
      cell(timeElement(at)), cell(number(current)), cell(total === null ? '–' : number(total)),
      cell(lowAt === null ? '–' : [timeElement(lowAt), ' – ', timeElement(highAt)])));
    if (shown !== rows.length || this.#points.at(-1)?.at !== Date.parse(body.lastElementChild?.querySelector('time').dateTime ?? '')) body.replaceChildren(...rows);
  }
}

function readPoint({ at, current, total, lowAt, finishAt, highAt }) {
  const instant = (text) => (text ? Date.parse(text) : null);
  return { at: Date.parse(at), current, total: total ?? null, lowAt: instant(lowAt), finishAt: instant(finishAt), highAt: instant(highAt) };
}

/** How the task stands, and the finish that is told of it. */
function pointOf(task, at) {
  const { current, total, eta } = task.progress;
  const told = eta?.state === 'estimated' && !ended(task) ? Date.parse(eta.finishAt) : null;
  const asked = told === null ? null : told - eta.remainingSeconds * 1000;
  const after = (seconds) => (asked === null ? null : asked + seconds * 1000);
  return { at, current, total: total ?? null, lowAt: after(eta?.lowSeconds), finishAt: told, highAt: after(eta?.highSeconds) };
}

function wordOf({ reason }) {
  return reason.split(':', 1)[0];
}

function turnOf(event) {
  const turn = { retry: 'retry', 'lease-lost': 'takeover', 'total-revised': 'revised' }[wordOf(event)];
  return turn ?? (event.to === 'paused' ? 'pause' : null);
}

/** When nobody worked: queued again, paused, or lost until the next claim. `until` closes the last one. */
function rests(events, start, until) {
  const found = [];
  let since = null;
  for (const event of events) {
    const at = Date.parse(event.at);
    if (at < start) continue;
    if (AT_WORK.has(event.to) && wordOf(event) !== 'lease-lost') {
      if (since !== null) found.push([since, at]);
      since = null;
    } else {
      since ??= at;
    }
  }
  if (since !== null && until !== null) found.push([since, until]);
  return found;
}

/** A rest is flat: where work goes on, the count is what it was when it stopped. */
function flattened(points, idle) {
  const flat = [...points];
  for (const [from, to] of idle) {
    const after = flat.findIndex(({ at }) => at === to);
    if (after === 0 || (after > 0 && flat[after - 1].at < from)) flat.splice(after, 0, { ...flat[after], at: from, lowAt: null, finishAt: null, highAt: null });
  }
  return flat;
}

/** As many children as items, each brought to what its item says. */
function patchList(parent, items, make, patch) {
  while (parent.childElementCount > items.length) parent.lastElementChild.remove();
  while (parent.childElementCount < items.length) parent.append(make());
  items.forEach((item, n) => patch(parent.children[n], item));
}
