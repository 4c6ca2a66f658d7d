/**
 * Makes and patches elements.
 *
 * The one door to the document: text goes in as text nodes and as plain attribute values, never as markup. This file and
 * all others must never parse text as markup, never set a style attribute and never set a link that is not http(s),
 * same-origin or a download of ours. A patch writes only what differs, so focus, selection and scroll survive it.
 */

import { drawing } from './place.js';

const SVG = 'http://www.w3.org/2000/svg';
/**
 * An element. `attributes` values: false, null and undefined leave it out, true sets it empty; keys that begin with `on`
 * add a listener. Children are nodes, texts, or lists of them.
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else setAttribute(element, key, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** An icon, invisible to assistive technology: a word always stands beside it or names its button. */
export function icon(name, extra = '') {
  const element = svg('svg', { class: `tb-icon ${extra}`.trim(), 'aria-hidden': 'true' });
  setIcon(element, name);
  return element;
}

/** Makes an icon, also one that the server wrote, show another drawing. */
export function setIcon(element, name) {
  if (element.dataset.icon === name) return;
  element.dataset.icon = name;
  element.setAttribute('viewBox', '0 0 16 16');
  element.replaceChildren(...drawing(name).map(([tag, attributes]) => svg(tag, attributes)));
}

/** An svg element with plain attributes; for the drawings that are not icons. */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) setAttribute(element, key, value);
  element.append(...children);
  return element;
}

/** Replaces an element's text, in its one text node, and only when it differs. */
export function setText(element, text) {
  const value = text ?? '';
  if (element.childNodes.length === 1 && element.firstChild.nodeType === Node.TEXT_NODE) {
    if (element.firstChild.data !== value) element.firstChild.data = value;
  } else if (element.textContent !== value) {
    element.textContent = value;
  }
}

/** Sets, or with false, null and undefined removes, an attribute; only when it differs. */
export function setAttribute(element, name, value) {
  if (value === false || value === null || value === undefined) {
    if (element.hasAttribute(name)) element.removeAttribute(name);
    return;
  }
  const text = value === true ? '' : String(value);
  if (element.getAttribute(name) !== text) element.setAttribute(name, text);
}

/** A link target that may be followed: relative, http or https; any other scheme is null. */
export function safeHref(href) {
  if (!href) return null;
  try {
    const url = new URL(href, document.baseURI);
    return url.protocol === 'http:' || url.protocol === 'https:' ? href : null;
  } catch {
    return null;
  }
}

/** The data that the server put into the page as JSON under this id, or null. */
export function pageData(id) {
  const element = document.getElementById(id);
  return element ? JSON.parse(element.textContent) : null;
}
