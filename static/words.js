/**
 * What a task says about itself: its kind, colour, bar, figures and sentences.
 *
 * Pure: one task summary and the server's now in, plain data out; no document, no network. The server's pages say the
 * same by the same catalogue (src/web/pages/say.rs), so a row does not change when a script takes it over. Must never
 * invent a number: percent, counts and finish time come from the task, and what is unknown stays unsaid.
 */
import { has, number, percent, t, unitName } from './i18n.js';
import { ago, day, duration, remainingSpan, roundRemaining } from './time.js';

const TONES = {
  queued: 'muted', blocked: 'muted', running: 'accent', retrying: 'warn', stalled: 'warn', 'no-signal': 'warn', pausing: 'still', paused: 'still',
  cancelling: 'still', cancelled: 'still', failed: 'bad', succeeded: 'ok', partial: 'warn', unknown: 'muted',
};
const ICONS = { 'no-signal': 'stalled' };
/** A planned gap between two chunks is told from this length on; shorter ones are the rhythm of the work. */
const LONG_GAP_MS = 5_000;
const ENDED = new Set(['succeeded', 'failed', 'cancelled']);

/** Whether the task has come to an end (from which only a resume leads back). */
export function ended(task) {
  return ENDED.has(task.state);
}

/** The kind of row: the state, refined by why it waits and how it ended. A state we do not know is `unknown`. */
export function kindOf(task) {
  if (task.waiting?.reason === 'retry' && (task.state === 'running' || task.state === 'queued')) return 'retrying';
  if (task.state === 'running') {
    if (task.silentSince) return 'no-signal';
    return task.progress?.eta?.state === 'stalled' ? 'stalled' : 'running';
  }
  if (task.state === 'succeeded') return (task.rows?.failed ?? 0) > 0 || task.warnings?.length ? 'partial' : 'succeeded';
  return Object.hasOwn(TONES, task.state) ? task.state : 'unknown';
}

/** The group a row stands in: attention, running, queued, today or earlier. */
export function groupOf(task, now) {
  const reason = task.waiting?.reason;
  if (task.state === 'paused' || reason === 'no-handler' || reason === 'pack-disabled') return 'attention';
  if (task.state === 'failed' && !task.read) return 'attention';
  if (task.state === 'queued' || task.state === 'blocked') return 'queued';
  if (!ended(task)) return 'running';
  return task.finishedAt && day(task.finishedAt) === day(now) ? 'today' : 'earlier';
}

/** The groups in their order. */
export const GROUPS = ['attention', 'running', 'queued', 'today', 'earlier'];

/** The first characters that tell two ids apart by eye: the random end, as the front of a UUIDv7 is the time. */
export function shortId(id) {
  return `#${id.slice(-4)}`;
}

/** Everything a row shows. `titleOf` gives the title of another task when it is known. */
export function describe(task, now, titleOf = () => null) {
  const kind = kindOf(task);
  const progress = task.progress ?? {};
  const share = Number.isFinite(progress.percent) ? progress.percent : null;
  const say = sentence(task, kind, now, titleOf);
  const when = timing(task, kind, now);
  return {
    kind,
    tone: TONES[kind],
    icon: ICONS[kind] ?? kind,
    word: t(`state.${kind}`),
    message: say,
    bar: bar(task, kind, share),
    percent: share === null ? '' : percent(share),
    count: count(progress),
    valueText: valueText(progress, kind === 'running' ? when.text : ''),
    eta: when.text,
    atLabel: when.label,
    at: when.at,
    ...nextBatch(task, kind, now),
  };
}

function bar(task, kind, share) {
  if (kind === 'succeeded' || kind === 'partial' || kind === 'unknown') return { look: 'none', value: null };
  if (share !== null) return { look: 'value', value: share };
  if (['running', 'stalled', 'no-signal', 'pausing', 'cancelling'].includes(kind)) {
    const moving = kind === 'running' && (!task.waiting || task.waiting.reason === 'delay');
    return { look: moving ? 'moving' : 'still', value: null };
  }
  return { look: 'none', value: null };
}

/** "1,200 / 5,000 rows", "1,250 rows" with an unknown total, or nothing before the first report. */
export function count({ current, total, unit }) {
  if (!Number.isFinite(current) || unit === 'percent') return '';
  if (total > 0) {
    const noun = unitName(unit, total);
    if (current > total) return t('count.over', { current, total, unit: noun });
    return noun ? t('count.of', { current, total, unit: noun }) : t('count.of.bare', { current, total });
  }
  return current > 0 || total === 0 ? amount(current, unit) : '';
}

/** An amount with its unit: "1,250 rows". */
export function amount(current, unit) {
  const noun = unit === 'percent' ? '' : unitName(unit, current);
  return noun ? t('count.only', { current, unit: noun }) : number(current);
}

function valueText({ current, total, unit, percent: share }, left) {
  if (!Number.isFinite(current)) return null;
  const known = Number.isFinite(share) && total > 0;
  const value = known
    ? t('bar.value', { current, total, unit: unitName(unit, total) }).trim()
    : t('bar.unknown', { current, unit: unitName(unit, current) });
  return left && known ? `${value}, ${left}` : value;
}

function sentence(task, kind, now, titleOf) {
  const { progress = {}, waiting } = task;
  switch (kind) {
    case 'queued':
      return joined([retryOf(task), waiting ? waitsFor(waiting) : t('say.starting')]);
    case 'blocked': {
      if (!waiting?.blockedBy) return t('say.blocked.key');
      const title = titleOf(waiting.blockedBy);
      return t('say.blocked', { task: title ? `${title} ${shortId(waiting.blockedBy)}` : shortId(waiting.blockedBy) });
    }
    case 'retrying':
      return joined([attempt(task), firstLine(task.error?.message)]);
    case 'no-signal':
      return t('say.recovered');
    case 'cancelling':
      return now - Date.parse(task.stop?.at ?? task.updatedAt) > 60_000 ? t('say.unconfirmed') : t('say.cancelling');
    case 'pausing':
      return t('say.pausing');
    case 'unknown':
      return t('say.unknown');
    case 'failed':
      return firstLine(task.error?.message) || (has(`error.kind.${task.error?.kind}`) ? t(`error.kind.${task.error.kind}`) : '');
    case 'cancelled':
      return stopped(progress);
    case 'paused':
      return joined([waiting?.reason === 'pack-disabled' ? t('say.pack_disabled') : '', stopped(progress)]);
    case 'succeeded':
      return finished(task);
    case 'partial':
      return task.rows?.failed ? rowCounts(task.rows) : firstLine(warningText(task.warnings[0]));
    default:
      return running(task, progress);
  }
}

/** Why a task that is due, or was never started, does not run: its place in the queue, or what is missing. */
function waitsFor(waiting) {
  if (Number.isFinite(waiting.position) && waiting.position > 0) return t('say.position', { n: waiting.position });
  const known = { capacity: 'say.capacity', 'no-handler': 'say.no_handler', 'pack-disabled': 'say.pack_disabled', children: 'say.children' }[waiting.reason];
  return known ? t(known) : '';
}

function running(task, progress) {
  const { waiting } = task;
  const held = waiting && ['no-handler', 'pack-disabled', 'children'].includes(waiting.reason);
  return joined([
    retryOf(task),
    task.attempt > 1 ? attempt(task) : '',
    revised(progress),
    held ? waitsFor({ reason: waiting.reason }) : '',
    firstLine(progress.message) || firstLine(progress.phase),
  ]);
}

function attempt(task) {
  return t('say.attempt', { n: task.attempt, max: task.maxAttempts });
}

/** A retry begins from the start, as a new task: of which one it says. */
function retryOf(task) {
  return task.retryOf ? t('say.retry_of', { task: shortId(task.retryOf) }) : '';
}

function revised({ revisedFrom, total }) {
  return revisedFrom > 0 && total > 0 ? t('say.revised', { from: revisedFrom, to: total }) : '';
}

function joined(parts) {
  return parts.filter(Boolean).join(' · ');
}

/** "stopped at 1,250 of 5,000 (25 %)": the last stored value, whatever the end was. */
export function stopped({ current, total, percent: share, unit } = {}) {
  if (!Number.isFinite(current)) return '';
  if (Number.isFinite(share) && total > 0) return t('say.stopped', { current, total, percent: percent(share) });
  return current > 0 ? t('say.stopped.count', { count: amount(current, unit) }) : '';
}

/** The same for a failed task, which may have reached its total and still failed. */
export function stoppedFailed(progress) {
  const { current, total, percent: share } = progress ?? {};
  if (Number.isFinite(share) && total > 0 && current >= total) return t('say.finishing', { current, total, percent: percent(share) });
  return stopped(progress);
}

function finished(task) {
  const { current, unit } = task.progress ?? {};
  const took = task.startedAt && task.finishedAt ? duration(Date.parse(task.finishedAt) - Date.parse(task.startedAt)) : null;
  if (!took) return '';
  return current > 0 ? t('say.done', { count: amount(current, unit), duration: took }) : t('say.done.time', { duration: took });
}

function rowCounts({ ok = 0, skipped = 0, failed = 0 }) {
  return skipped > 0 ? t('say.rows.skipped', { ok, skipped, failed }) : t('say.rows', { ok, failed });
}

/** A warning in words: a code that the catalogue knows, else as it came. */
export function warningText(warning) {
  return has(`warning.${warning}`) ? t(`warning.${warning}`) : (warning ?? '');
}

function firstLine(text) {
  return (text ?? '').split('\n', 1)[0].trim();
}

/** The time part of a row: `{text, label, at}`; `at` is an instant that is shown in full after `label`. */
export function timing(task, kind, now) {
  const none = { text: '', label: '', at: null };
  const eta = task.progress?.eta;
  if (ended(task)) return { text: kind === 'failed' ? stoppedFailed(task.progress) : '', label: t('at.finished'), at: task.finishedAt };
  if (kind === 'retrying') return task.waiting?.until ? { text: '', label: t('say.retry'), at: task.waiting.until } : none;
  if (kind === 'queued') {
    const until = task.waiting?.reason === 'scheduled' && task.waiting.until;
    return until ? { text: '', label: t('say.scheduled'), at: until } : { text: '', label: t('at.created'), at: task.createdAt };
  }
  if (kind === 'blocked' || kind === 'paused') return { text: '', label: t('at.created'), at: task.createdAt };
  if (kind === 'no-signal') return { text: '', label: t('say.no_signal'), at: task.silentSince };
  if (kind === 'stalled') return { text: t('say.moved', { ago: ago(task.progress.updatedAt ?? task.updatedAt) }), label: '', at: null };
  return kind === 'running' ? remaining(eta, now) : none;
}

function remaining(eta, now) {
  if (eta?.state === 'estimated') {
    const finishAt = Date.parse(eta.finishAt);
    if (finishAt <= now) return { text: t('eta.overdue'), label: '', at: null };
    return { text: left((finishAt - now) / 1000, eta.confidence), label: t('eta.finishes'), at: eta.finishAt };
  }
  return { text: eta?.state === 'estimating' || eta?.state === 'unknown' ? t('eta.estimating') : '', label: '', at: null };
}

/** When the next chunk of a running task is planned, if that is a while: it stands beside the ETA, which stays. */
function nextBatch(task, kind, now) {
  const until = kind === 'running' && task.waiting?.reason === 'delay' ? task.waiting.until : null;
  const long = until && Date.parse(until) - now >= LONG_GAP_MS;
  return { nextLabel: long ? t('say.delay') : '', next: long ? until : null };
}

/** "about 4 min left"; a low confidence reads "roughly". */
export function left(seconds, confidence) {
  if (roundRemaining(seconds).unit === 'under') return t('eta.under');
  return t(confidence === 'low' ? 'eta.roughly' : 'eta.about', { span: remainingSpan(seconds) });
}
