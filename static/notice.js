/**
 * Notices of the system: asked for by a click alone, shown only while no page is on the screen.
 *
 * One is named by its task, so that a newer one takes its place, and says title and state and nothing else. Who has refused
 * is never asked again; a frame of another origin never asks and never shows one.
 */
import { address } from './api.js';
import { currentLanguage } from './i18n.js';

/** How it stands: `none` (not here), `default` (may be asked), `granted` or `denied`. */
export function noticeState() {
  if (typeof window.Notification !== 'function' || !window.isSecureContext || framedByOthers()) return 'none';
  return window.Notification.permission;
}

/** Asks the person; to be called from a click. Gives how it stands then. */
export async function askForNotices() {
  if (noticeState() === 'default') await window.Notification.requestPermission();
  return noticeState();
}

/** Shows one for a task, if nobody looks at this page and it was allowed. */
export function notice(task, word) {
  if (!document.hidden || noticeState() !== 'granted') return;
  try {
    const shown = new window.Notification(task.title, { body: word, tag: task.id, lang: currentLanguage() });
    shown.addEventListener('click', () => {
      window.focus();
      location.assign(address(`tasks/${task.id}`));
    });
  } catch {
    // Some systems show notices only for installed pages: then there is none, and the bell has it all.
  }
}

function framedByOthers() {
  if (window.top === window.self) return false;
  try {
    return window.top.location.origin !== location.origin;
  } catch {
    return true;
  }
}
