/**
 * Modal dialogs: a question with a safe answer.
 *
 * Native `<dialog>`: Esc closes, the focus is kept inside and goes back to the opener. The focus starts on the safe
 * button, so that a blind Enter changes nothing. A dialog opens in the root of its opener, so that it finds its styles
 * inside a widget too. An opener that was drawn anew meanwhile is found again by what it does, else its row takes the
 * focus. Must never act by itself: it only answers.
 */
import { h, setText } from './dom.js';
import { everySecond } from './time.js';

let count = 0;

/** A dialog with a heading, named by it. Not yet open. */
export function makeDialog({ title, lead = '', small = false }) {
  count += 1;
  const heading = `tb-dialog-${count}`;
  const dialog = h('dialog', { class: 'tb-dialog', 'aria-labelledby': heading, 'data-size': small ? 'small' : null });
  dialog.append(h('div', { class: 'tb-dialog-head' }, h('h2', { id: heading }, title), lead ? h('p', {}, lead) : null));
  return dialog;
}

/** Puts a dialog beside its opener and opens it; it is taken out again when it closes, and the focus goes back. */
export function openDialog(dialog, opener) {
  const root = opener?.getRootNode?.() ?? document;
  (root instanceof ShadowRoot ? root : document.body).append(dialog);
  const row = opener?.closest?.('[data-task]');
  dialog.addEventListener('close', () => {
    dialog.remove();
    const again = opener?.isConnected ? opener : row?.querySelector(`[data-do="${opener.dataset.do}"]`);
    (again ?? row)?.focus({ preventScroll: true });
  });
  dialog.addEventListener('click', (event) => {
    if (event.target === dialog) dialog.close();
  });
  dialog.showModal();
}

/** Asks. `text` is a function, since what it tells may go on while the dialog is open. Resolves to true only for `yes`. */
export function ask({ opener, title, text, yes, no, danger = false }) {
  return new Promise((resolve) => {
    let answer = false;
    const dialog = makeDialog({ title, lead: text(), small: true });
    const still = everySecond(() => setText(dialog.querySelector('p'), text()));
    const safe = h('button', { class: 'tb-button', type: 'button', onclick: () => dialog.close() }, no);
    const go = h('button', {
      class: 'tb-button', type: 'button', 'data-look': danger ? 'danger' : 'primary',
      onclick: () => {
        answer = true;
        dialog.close();
      },
    }, yes);
    dialog.append(h('div', { class: 'tb-dialog-body' }), h('div', { class: 'tb-dialog-foot' }, safe, go));
    dialog.addEventListener('close', () => {
      still();
      resolve(answer);
    }, { once: true });
    openDialog(dialog, opener);
    safe.focus();
  });
}
