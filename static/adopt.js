/**
 * The groups of a list as the server wrote them, to be taken over as they stand: sections, batches and rows.
 *
 * Must never move or change a row: that is for groups.js, once nobody is in the list.
 */
import { setAttribute } from './dom.js';
import { t } from './i18n.js';

/** What stands below `root`, as `Groups` keeps it. */
export function adopted(root) {
  const found = { rows: new Map(), sections: new Map(), batches: new Map(), batchOf: new Map() };
  // White space between rows is no place to put a row before.
  for (const place of root.querySelectorAll('.tb-rows, .tb-batch-rows')) place.replaceChildren(...place.children);
  for (const element of root.querySelectorAll('[data-group]')) {
    const list = element.querySelector('.tb-rows');
    setAttribute(list, 'role', 'feed');
    setAttribute(list, 'aria-label', t(`group.${element.dataset.group}`));
    found.sections.set(element.dataset.group, { element, list, count: element.querySelector('.tb-group-count') });
  }
  for (const batch of root.querySelectorAll('[data-batch]')) {
    found.batches.set(batch.dataset.batch, batch);
    found.batchOf.set(batch.dataset.batch, [...batch.querySelectorAll('[data-task]')].map((row) => row.dataset.task));
  }
  for (const row of root.querySelectorAll('[data-task]')) found.rows.set(row.dataset.task, row);
  return found;
}
