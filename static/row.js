/**
 * The task row: one template for the bell, the list, the record page and the buttons page.
 *
 * The server writes the same parts (templates/parts/row.html) under the same `data-part` names, so a row is either made
 * here or taken over. A patch changes texts and attributes in place and never replaces a row, so focus, selection and
 * scroll survive it; buttons are redrawn only when `can` changed. Must never compute what a row says: that is words.js.
 */
import { actButtons } from './acts.js';
import { address, download, linkTo, linkToTask, usesToken } from './api.js';
import { h, icon, safeHref, setAttribute, setIcon, setText } from './dom.js';
import { t } from './i18n.js';
import { HOSTED } from './place.js';
import { setTime } from './time.js';
import { describe, ended } from './words.js';

const parts = new WeakMap();

/** A new row for a task. */
export function makeRow(task, now, options) {
  const row = h('article', { class: 'tb-row', 'data-task': task.id, tabindex: '0' },
    icon('unknown'),
    h('span', { class: 'tb-head' },
      h('a', { class: 'tb-title', 'data-part': 'title' }),
      h('a', { class: 'tb-chip', 'data-part': 'record', hidden: true }),
      h('span', { class: 'tb-unread', 'data-part': 'unread', hidden: true })),
    h('span', { class: 'tb-figure' }, h('span', { class: 'tb-count', 'data-part': 'count' }), h('strong', { class: 'tb-percent', 'data-part': 'percent' })),
    h('progress', { class: 'tb-bar', 'data-part': 'bar', max: '100' }),
    h('span', { class: 'tb-say' },
      h('span', { class: 'tb-word', 'data-part': 'word' }),
      h('span', { class: 'tb-message', 'data-part': 'message' }),
      h('span', { class: 'tb-at', 'data-part': 'next-label' }),
      h('time', { class: 'tb-time', 'data-part': 'next' })),
    h('span', { class: 'tb-when' },
      h('span', { class: 'tb-eta', 'data-part': 'eta' }),
      h('span', { class: 'tb-at', 'data-part': 'at-label' }),
      h('time', { class: 'tb-time', 'data-part': 'at' })),
    h('span', { class: 'tb-acts', 'data-part': 'acts' }));
  patchRow(row, task, now, options);
  return row;
}

function partsOf(row) {
  if (!parts.has(row)) {
    const found = { icon: row.querySelector('.tb-icon'), can: null };
    for (const element of row.querySelectorAll('[data-part]')) found[element.dataset.part] = element;
    parts.set(row, found);
  }
  return parts.get(row);
}

/** Brings a row to what the task says now. `note` is a sentence that stands in for the message. */
export function patchRow(row, task, now, { titleOf, note = null } = {}) {
  const part = partsOf(row);
  const says = describe(task, now, titleOf);
  setAttribute(row, 'data-state', task.state);
  setAttribute(row, 'data-revision', task.revision);
  setAttribute(row, 'data-kind', says.kind);
  setAttribute(row, 'data-tone', says.tone);
  setAttribute(row, 'data-note', Boolean(note));
  setAttribute(row, 'aria-label', `${task.title}, ${says.word}`);
  setIcon(part.icon, says.icon);
  setText(part.title, task.title);
  setAttribute(part.title, 'title', task.title);
  setLink(part.title, linkToTask(task.id));
  patchRecord(part.record, task.record);
  setAttribute(part.unread, 'hidden', !(ended(task) && task.read === false));
  setText(part.count, says.count);
  setText(part.percent, says.percent);
  patchBar(part.bar, task, says);
  setText(part.word, says.word);
  setText(part.message, note ?? says.message);
  setAttribute(part.message, 'title', note ?? (says.message || null));
  setText(part.eta, says.eta);
  setText(part['at-label'], says.at ? says.atLabel : '');
  setTime(part.at, says.at);
  setText(part['next-label'], says.nextLabel);
  setTime(part.next, says.next);
  patchActs(part, task);
}

function patchRecord(chip, record) {
  setAttribute(chip, 'hidden', !record);
  if (!record) return;
  setText(chip, `${record.type} ${record.id}`);
  setAttribute(chip, 'title', `${record.type} ${record.id}`);
  // In the application's own pages the record itself is nearer than our page about it.
  const own = HOSTED ? safeHref(record.url) : null;
  setLink(chip, own ? { href: own } : linkTo(`records/${encodeURIComponent(record.type)}/${encodeURIComponent(record.id)}`));
}

function setLink(link, { href, target, rel }) {
  for (const [name, value] of Object.entries({ href, target, rel })) setAttribute(link, name, value);
}

/** The bar never runs backwards before the eye: a lower value is set without its transition. */
export function patchBar(bar, task, says) {
  const before = bar.hasAttribute('value') ? Number(bar.getAttribute('value')) : 0;
  setAttribute(bar, 'data-bar', says.bar.look);
  setAttribute(bar, 'data-still', says.bar.value !== null && says.bar.value < before);
  setAttribute(bar, 'value', says.bar.value);
  setAttribute(bar, 'aria-label', task.title);
  setAttribute(bar, 'aria-valuetext', says.valueText);
}

function patchActs(part, task) {
  const file = task.artifacts?.[0];
  const can = `${(task.can ?? []).join(' ')} ${file?.id ?? ''}`;
  if (part.can === can) return;
  const focused = part.acts.contains(part.acts.getRootNode().activeElement);
  part.can = can;
  part.acts.replaceChildren(...(file ? [downloadLink(file)] : []), ...actButtons(task));
  if (focused) (part.acts.querySelector('button') ?? part.title).focus({ preventScroll: true });
}

/** The way to a task's first result file; the others are on its page. */
function downloadLink({ id, name }) {
  const path = `api/v1/artifacts/${encodeURIComponent(id)}`;
  const fetched = (event) => {
    if (!usesToken()) return;
    event.preventDefault();
    download(path, name).catch((problem) => setText(event.currentTarget, problem.message));
  };
  return h('a', { class: 'tb-button', 'data-size': 'small', href: address(path).href, title: name, download: true, onclick: fetched }, t('do.download'));
}

/** The skeleton of rows that are on their way. */
export function skeleton() {
  return h('div', { class: 'tb-skeleton', 'aria-busy': 'true', 'aria-label': t('list.loading') }, h('i'), h('i'), h('i'), h('i'));
}

/** An empty place: why it is empty, and what to do. */
export function emptyPlace({ symbol = 'inbox', title, text, action = null }) {
  return h('div', { class: 'tb-empty' }, icon(symbol), h('strong', {}, title), h('span', {}, text), action);
}
