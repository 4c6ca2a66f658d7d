/**
 * What every widget shares: a shadow root with the one stylesheet, and a start that waits for the center.
 *
 * The sheet is fetched once and adopted as a constructed sheet, so no inline style is needed and no rule of the host page
 * reaches in. Must never refer to an id outside its root, and never take a token from an attribute.
 */

let sheet = null;

/** The shared sheet; fetched once per page. */
function stylesheet() {
  sheet ??= fetch(new URL('./taskbell.css', import.meta.url))
    .then((answer) => answer.text())
    .then((text) => new CSSStyleSheet().replace(text));
  return sheet;
}

/** A shadow root that has its styles before it has content. */
export async function styledRoot(host) {
  const root = host.shadowRoot ?? host.attachShadow({ mode: 'open', delegatesFocus: false });
  root.adoptedStyleSheets = [await stylesheet()];
  return root;
}
