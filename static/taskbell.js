/**
 * The one file that a host page loads: `<script type="module" src="…/static/taskbell.js">`.
 *
 * Gives `<taskbell-bell>`, `<taskbell-progress>` and a headless `connect({url, getToken})` with the same store and
 * socket. Events on the document: `taskbell:submitted` and `taskbell:ended`, each with the task. A token comes from
 * `getToken`, never from an attribute.
 */
import './bell.js';
import './progress.js';
import { center } from './center.js';

/** The store and the connection of this page: `{tasks, connection, mark, markAll}`. */
export function connect(options = {}) {
  return center(options);
}
