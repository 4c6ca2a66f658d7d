/**
 * The script of every page: the bell, the times, and the part that belongs to the page.
 *
 * A page says what it is by `data-page` on its main element. All of them work without this file; it only takes over what
 * is there. Must never run before the words are loaded, because the center loads them.
 */
import './bell.js';
import { startButtons } from './buttons.js';
import { center } from './center.js';
import { startList } from './list.js';
import { startRecord } from './record.js';
import { startTask } from './task.js';
import { Teller } from './tell.js';
import { localizeTimes } from './time.js';

const STARTS = { actions: startButtons, notifications: startList, task: startTask, record: startRecord };

const main = document.querySelector('main[data-page]');
if (document.getElementById('tb-page')) {
  const shared = await center();
  localizeTimes(document);
  const teller = new Teller(shared.tasks, { user: shared.user });
  shared.say = (text) => teller.say(text);
  STARTS[main?.dataset.page]?.(main, shared);
}
for (const form of document.querySelectorAll('form[data-auto]')) {
  form.addEventListener('change', () => form.requestSubmit());
}
