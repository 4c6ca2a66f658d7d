/**
 * How the server took a click, in words.
 */
import { t } from './i18n.js';
import { ago } from './time.js';

/** A replay or a skip says so; a new task needs no words, it is there. */
export function howTaken({ skipped, replayed, replay }) {
  if (skipped) return t('action.skipped');
  if (!replayed) return '';
  return replay?.startedBy ? t('action.replayed', { user: replay.startedBy, ago: ago(replay.createdAt) }) : t('action.replayed.now');
}
