/**
 * Where the widgets stand: in a page of another application. Takes the place of static/place.js in the one script, which
 * holds style and drawings itself; only the words of the language in use are another file.
 */
import { drawings, style } from 'made';

export const HOSTED = true;

export function stylesheet() {
  return new CSSStyleSheet().replace(style);
}

export function loadDrawings() {}

export function drawing(name) {
  return (drawings[name] ?? []).map((shape) => (Array.isArray(shape) ? shape : ['path', { d: shape }]));
}

export function catalogue(language) {
  return `./i18n/${language}.widgets.json`;
}
