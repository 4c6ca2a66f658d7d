/**
 * The script of every page: the bell, the times, and the part that belongs to the page.
 *
 * A page says what it is by `data-page` on its main element. All of them work without this file; it only takes over what
 * is there. Must never run before the words are loaded, because the center loads them.
 */
import './bell.js';
import { startButtons } from './buttons.js';
import { center } from './center.js';
import { h } from './dom.js';
import { t } from './i18n.js';
import { startList } from './list.js';
import { liveBanner, signInAddress } from './live.js';
import { stayOne } from './one.js';
import { usePreferences } from './preferences.js';
import { startRecord } from './record.js';
import { emptyPlace } from './row.js';
import { startSettings } from './settings.js';
import { startTask } from './task.js';
import { Teller } from './tell.js';
import { localizeTimes, rememberZone } from './time.js';

const STARTS = { actions: startButtons, notifications: startList, task: startTask, record: startRecord, settings: startSettings };

const main = document.querySelector('main[data-page]');
if (document.getElementById('tb-page')) {
  const shared = await center();
  stayOne(shared);
  rememberZone();
  localizeTimes(document);
  document.querySelector('header.top')?.append(liveBanner(shared.connection));
  shared.connection.addEventListener('live', () => shared.connection.live === 'signed-out' && clear());
  usePreferences(shared.scope);
  const teller = new Teller(shared);
  shared.say = (text) => teller.say(text);
  STARTS[main?.dataset.page]?.(main, shared);
}
for (const form of document.querySelectorAll('form[data-auto]')) {
  form.addEventListener('change', () => form.requestSubmit());
}

/** Nobody is signed in any more: the page shows nothing of whom it was for, and keeps nothing. */
function clear() {
  for (const data of document.querySelectorAll('script[type="application/json"], dialog, .tb-toast')) data.remove();
  document.title = t('app.name');
  document.getElementById('tb-status')?.replaceChildren();
  const link = h('a', { class: 'tb-button', href: signInAddress() }, t('live.sign_in'));
  main?.replaceChildren(h('div', { class: 'card' }, emptyPlace({ symbol: 'user', title: t('live.signed-out'), text: t('error.signed_out'), action: link })));
}
