/**
 * Of several tabs one does it: whoever claims a thing first.
 *
 * Claims are kept for a while, so that a tab that hears of the same end later does not tell it again. Exact by a Web Lock of the
 * thing itself, held until what was written can be read in every tab: a browser hands that on behind the lock. Where
 * there is none, as on plain http, each writes its name, waits, and looks whose stayed. Where a browser keeps nothing, each tab is
 * for itself. Holds ids only, never a title.
 */

const KEPT = 50;
const SETTLE_MS = 150;
const HELD_MS = 1000;

/** Whether this tab is the one that does `what`; `scope` is tenant and user. */
export async function claim(scope, what) {
  const place = `taskbell:told:${scope}`;
  const me = String(Math.random());
  try {
    if (navigator.locks) return await first(place, what, me);
    if (!enter(place, what, me)) return false;
    await new Promise((go) => setTimeout(go, SETTLE_MS));
    return (claims(place).find(([name]) => name === what)?.[1] ?? me) === me;
  } catch {
    return true;
  }
}

function first(place, what, me) {
  return new Promise((decide, fail) => {
    const hold = async (lock) => {
      const mine = lock !== null && (await navigator.locks.request(place, () => enter(place, what, me)));
      decide(mine);
      if (mine) await new Promise((go) => setTimeout(go, HELD_MS));
    };
    navigator.locks.request(`${place}:${what}`, { ifAvailable: true }, hold).catch(fail);
  });
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
