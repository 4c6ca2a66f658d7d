/**
 * The lines of a task's picture: from points to the paths of an SVG.
 *
 * Pure; the same steps as src/web/pages/plot.rs, which tells what they mean, so that the picture does not change when the
 * script takes it over. Instants are milliseconds. Must never touch the document.
 */

const WIDTH = 1000;
const BOTTOM = 230;
const RISE = 220;
const PAST_SHARE = 12;

/** Draws `{start, until, ended, points, rests, turns}`; null for a scene without points, or in which nothing was counted. */
export function draw({ start, until, ended, points: stored, rests, turns }) {
  if (stored.length === 0) return null;
  const last = stored.at(-1);
  const points = [{ at: start, current: 0, total: stored[0].total, lowAt: null, highAt: null }, ...stored];
  if (points.every(({ current, total }) => current === 0 && !total)) return null;
  const right = rightEdge(start, until, ended, stored);
  const top = topOf(points);
  const span = Math.max(1, right - start);
  const x = (at) => Math.min(WIDTH, Math.max(0, Math.round(((at - start) / span) * WIDTH)));
  const y = (n) => BOTTOM - Math.round((Math.min(n, top) / top) * RISE);
  const place = ({ at, current }) => `${x(at)} ${y(current)}`;
  const done = `M${points.map(place).join('L')}`;
  return {
    done,
    ground: `${done}L${x(last.at)} ${BOTTOM}L0 ${BOTTOM}Z`,
    told: told(points, x, y),
    ahead: !ended && last.finishAt !== null && last.total !== null ? `M${place(last)}L${x(last.finishAt)} ${y(last.total)}` : '',
    total: totals(points, x, y),
    tip: ended ? '' : `M${place(last)}h0`,
    rests: rests.map(([from, to]) => [x(from), x(to) - x(from)]).filter(([, width]) => width > 0),
    turns: turns.map(([turn, at]) => [turn, x(at)]),
    right,
    top,
  };
}

function rightEdge(start, until, ended, points) {
  const past = Math.max(1, until - start);
  const highs = points.map(({ highAt }) => highAt).filter((at) => at !== null);
  const told = ended ? (highs.length > 0 ? Math.max(...highs) : null) : points.at(-1).highAt;
  const most = ended ? past + Math.trunc(past / 4) : past * PAST_SHARE;
  return Math.max(until, Math.min(told ?? until, start + most));
}

function topOf(points) {
  const most = Math.max(...points.map(({ current }) => current));
  const total = Math.max(0, ...points.map((point) => point.total ?? 0));
  return total > 0 ? Math.max(total, most) : roundAbove(Math.max(1, most));
}

/** The next of 1, 2, 5, 10, 20, … */
function roundAbove(n) {
  let step = 1;
  while (step < Math.trunc(n / 10)) step *= 10;
  return [1, 2, 5, 10, 20, 50, 100].map((k) => k * step).find((round) => round >= n) ?? n;
}

function told(points, x, y) {
  let path = '';
  let run = [];
  const close = () => {
    if (run.length > 0) {
      const early = run.map(([low, , at]) => `${low} ${at}`);
      const late = run.toReversed().map(([, high, at]) => `${high} ${at}`);
      path += `M${[...early, ...late].join('L')}Z`;
    }
    run = [];
  };
  for (const { lowAt, highAt, current } of points) {
    if (lowAt === null || highAt === null) {
      close();
      continue;
    }
    const at = y(current);
    if (run.length > 0 && at > run.at(-1)[2]) close();
    run.push([x(lowAt), x(highAt), at]);
  }
  close();
  return path;
}

function totals(points, x, y) {
  let path = '';
  let known = null;
  for (const { at, total } of points) {
    const next = total > 0 ? total : null;
    if (next === known) continue;
    if (known === null) path += `M${x(at)} ${y(next)}`;
    else path += next === null ? `H${x(at)}` : `H${x(at)}V${y(next)}`;
    known = next;
  }
  return known === null ? path : `${path}H${WIDTH}`;
}
