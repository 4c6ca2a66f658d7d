/**
 * The one file that a host page loads: `<script type="module" src="…/static/taskbell.js">`.
 *
 * Gives `<taskbell-bell>`, `<taskbell-button>`, `<taskbell-progress>` and, without any element, `connect()`. What they
 * take and tell is written down in taskbell.d.ts and docs/embedding.md. Adds nothing to the page's global names.
 */
import './bell.js';
import './button.js';
import './progress.js';
import { center } from './center.js';

/** The page's store and connection; `getToken` given here serves all widgets too. */
export function connect({ url, getToken } = {}) {
  return center({ url, getToken });
}
