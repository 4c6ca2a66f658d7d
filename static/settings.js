/**
 * The settings page: the switches that only a script can have. Language and zone are a plain form of the server.
 *
 * Notices of the system are explained first and asked for by a click; a refusal is told in words and not asked about again.
 */
import { h } from './dom.js';
import { t } from './i18n.js';
import { askForNotices, noticeState } from './notice.js';
import { preference, setPreference } from './preferences.js';
import { everySecond, serverNow, setTime, viewerZone } from './time.js';

/** Takes over the page below `root`. */
export function startSettings(root) {
  const place = root.querySelector('[data-part="notices"]');
  const system = h('div', { class: 'settings-system' });
  place.replaceChildren(...toggle('toasts'), ...toggle('log'), system);
  paintSystem(system);
  const now = root.querySelector('[data-part="now"]');
  const tick = () => setTime(now, serverNow());
  root.querySelector('[data-part="zone"]').textContent = viewerZone();
  everySecond(tick);
  tick();
}

function toggle(name, label = `settings.${name}`) {
  const help = h('p', { class: 'tb-help', id: `${name}-help` }, t(`settings.${name}.help`));
  return [h('div', {}, box(name, label, `${name}-help`), help)];
}

function box(name, label, help) {
  return h('label', { class: 'tb-check' },
    h('input', { type: 'checkbox', checked: preference(name), 'aria-describedby': help, 'data-preference': name, onchange: (event) => setPreference(name, event.target.checked) }),
    h('span', {}, t(label)));
}

function paintSystem(place) {
  const state = noticeState();
  const ask = () =>
    h('button', {
      class: 'tb-button', type: 'button', 'data-part': 'ask', 'aria-describedby': 'system-help',
      async onclick() {
        setPreference('system', (await askForNotices()) === 'granted');
        paintSystem(place);
        place.querySelector('input')?.focus();
      },
    }, t('settings.system.ask'));
  const says = { none: () => h('p', { class: 'tb-help' }, t('settings.system.none')), denied: () => h('p', { class: 'tb-help', role: 'status' }, t('settings.system.denied')), default: ask, granted: () => box('system', 'settings.system.on', 'system-help') };
  place.replaceChildren(h('h3', {}, t('settings.system')), h('p', { class: 'tb-help', id: 'system-help' }, t('settings.system.help')), says[state]());
}
