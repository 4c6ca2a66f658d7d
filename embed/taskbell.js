/**
 * The entry of the one script that a host page loads: `<script type="module" src="…/static/taskbell.js">`.
 *
 * Gives `<taskbell-bell>`, `<taskbell-button>`, `<taskbell-progress>` and, without any element, `connect()`. What they
 * take and tell is written down in static/taskbell.d.ts and docs/embedding.md. Adds nothing to the page's global names.
 * `embed/build.mjs` makes static/taskbell.js of it.
 */
import '../static/bell.js';
import '../static/button.js';
import '../static/progress.js';
import { center } from '../static/center.js';

/** The page's store and connection; `getToken` given here serves all widgets too. */
export function connect({ url, getToken } = {}) {
  return center({ url, getToken });
}
