/**
 * Of several tabs one does it: whoever claims a thing first.
 *
 * Claims are kept for a while, so that a tab that hears of the same end later does not tell it again. Exact by a Web Lock; where
 * there is none, as on plain http, each writes its name, waits, and looks whose stayed. Where a browser keeps nothing, each tab is
 * for itself. Holds ids only, never a title.
 */

const KEPT = 50;
const SETTLE_MS = 150;

/** Whether this tab is the one that does `what`; `scope` is tenant and user. */
export async function claim(scope, what) {
  const place = `taskbell:told:${scope}`;
  const me = String(Math.random());
  try {
    if (navigator.locks) return await navigator.locks.request(place, () => enter(place, what, me));
    if (!enter(place, what, me)) return false;
    await new Promise((go) => setTimeout(go, SETTLE_MS));
    return (claims(place).find(([name]) => name === what)?.[1] ?? me) === me;
  } catch {
    return true;
  }
}

function enter(place, what, me) {
  const all = claims(place);
  if (all.some(([name]) => name === what)) return false;
  localStorage.setItem(place, JSON.stringify([...all, [what, me]].slice(-KEPT)));
  return true;
}

function claims(place) {
  return JSON.parse(localStorage.getItem(place) ?? '[]');
}
