/**
 * All tabs of a browser are one person's: a sign-out ends them all, and so does the page of somebody else.
 *
 * For our own pages, which know by the cookie who looks; in a page of another application its token says so. The note of who
 * it is outlives a tab that sleeps or lies in the back/forward cache; it is looked at when that tab wakes.
 */

/** Under this key the browser keeps whom its pages are for. */
const SIGNED_IN = 'taskbell:signed-in';
const NOBODY = '';

/** Ends a page of somebody who is no longer the one. */
export function stayOne(shared) {
  const me = shared.scope;
  const check = () => {
    const who = noted();
    if (who !== null && who !== me) shared.connection.signOut();
  };
  note(me);
  document.addEventListener('submit', (event) => {
    if (!event.target.matches?.('form[data-sign-out]')) return;
    note(NOBODY);
    shared.signOut();
  });
  addEventListener('storage', ({ key }) => key === SIGNED_IN && check());
  addEventListener('pageshow', ({ persisted }) => persisted && check());
  shared.connection.addEventListener('look', check);
}

/** A browser may forbid a page to keep anything; then each tab is for itself. */
function note(who) {
  try {
    localStorage.setItem(SIGNED_IN, who);
  } catch {
    return;
  }
}

function noted() {
  try {
    return localStorage.getItem(SIGNED_IN);
  } catch {
    return null;
  }
}
