/**
 * Where the widgets stand: in a page of our own, which has modules, style, drawings and words as files.
 *
 * In the one script for pages of other applications embed/place.js stands here. Must hold everything in which the two
 * differ before anybody has signed in.
 */

/** Whether this page is another application's. */
export const HOSTED = false;

/** The sheet of the widgets, as one that shadow roots adopt. */
export function stylesheet() {
  return fetch(new URL('./taskbell.css', import.meta.url))
    .then((answer) => answer.text())
    .then((text) => new CSSStyleSheet().replace(text));
}

const symbols = new Map();

/**
 * Loads the drawings of icons.svg. By the request itself, which parses no text of ours. Without it icons are empty: a word
 * always stands beside them.
 */
export function loadDrawings() {
  return new Promise((done) => {
    const request = new XMLHttpRequest();
    request.open('GET', new URL('./icons.svg', import.meta.url));
    request.responseType = 'document';
    request.addEventListener('load', () => {
      for (const symbol of request.responseXML?.querySelectorAll('symbol') ?? []) symbols.set(symbol.id, symbol);
    });
    request.addEventListener('loadend', done);
    request.send();
  });
}

/** The shapes of an icon, each a tag with its attributes. */
export function drawing(name) {
  return [...(symbols.get(name)?.children ?? [])].map((shape) => [shape.localName, Object.fromEntries([...shape.attributes].map((each) => [each.name, each.value]))]);
}

/** The file with the words of a language. */
export function catalogue(language) {
  return `./i18n/${language}.json`;
}
