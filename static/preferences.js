/**
 * What this person wants to be told in this browser: `toasts` (in the page), `system` (by the system), `log` (read aloud).
 *
 * Kept in the browser under tenant and user, so that the next person at it has their own; a tab hears at once what another one
 * changed. Where nothing can be kept the defaults hold. Must never hold anything but these switches.
 */

const DEFAULTS = { toasts: true, system: false, log: false };

let place = null;

/** From here on the switches are those of this person: `scope` is tenant and user. */
export function usePreferences(scope) {
  place = `taskbell:preferences:${scope}`;
}

/** Whether a switch is on. */
export function preference(name) {
  try {
    return Boolean(JSON.parse(localStorage.getItem(place) ?? '{}')[name] ?? DEFAULTS[name]);
  } catch {
    return DEFAULTS[name];
  }
}

/** Turns a switch. */
export function setPreference(name, on) {
  const all = Object.fromEntries(Object.keys(DEFAULTS).map((each) => [each, each === name ? on : preference(each)]));
  try {
    localStorage.setItem(place, JSON.stringify(all));
  } catch {
    return;
  }
}
