/**
 * What every widget shares: the shadow root with the one stylesheet, the center, and how it is told whose token speaks.
 *
 * The sheet is made once and adopted as a constructed sheet, so no inline style is needed and no rule of the host page
 * reaches in. `getToken` is a property and takes a function: one that a script set before the element was known is found
 * too. Must never refer to an id outside its root, never take a token from an attribute, and never keep a timer or a
 * subscription of an element that has left the page.
 */
import { center } from './center.js';
import { h } from './dom.js';
import { t } from './i18n.js';
import { stylesheet } from './place.js';

let sheet = null;

/** A custom element of ours. */
export class Widget extends HTMLElement {
  #getToken = null;
  #ends = [];

  constructor() {
    super();
    if (!Object.hasOwn(this, 'getToken')) return;
    const early = this.getToken;
    delete this.getToken;
    this.getToken = early;
  }

  /** The host page's function that gives a token for the signed-in user; all widgets of a page share the last one set. */
  get getToken() {
    return this.#getToken;
  }

  set getToken(getToken) {
    this.#getToken = getToken;
    if (getToken) center(this.#access());
  }

  /** The center, with the styles at hand; null when the element has left the page meanwhile. */
  async ready() {
    const [shared, styles] = await Promise.all([center(this.#access()), (sheet ??= stylesheet())]);
    if (!this.isConnected) return null;
    // Only now, so that what the page wrote inside the element shows until there is something better.
    const root = this.shadowRoot ?? this.attachShadow({ mode: 'open' });
    root.adoptedStyleSheets = [styles];
    return shared;
  }

  #access() {
    return { url: this.getAttribute('url'), getToken: this.#getToken, taskUrl: this.getAttribute('task-url'), lang: this.closest('[lang]')?.lang };
  }

  /** What ends with the element's time in the page. */
  untilGone(...ends) {
    this.#ends.push(...ends);
  }

  disconnectedCallback() {
    for (const end of this.#ends.splice(0)) end();
  }

  /** Tells the page, from here. */
  tell(type, detail, bubbles = true) {
    this.dispatchEvent(new CustomEvent(type, { bubbles, composed: true, detail }));
  }
}

/** A widget whose attributes say what it shows: it begins anew whenever one of them changes. */
export class TargetedWidget extends Widget {
  #turn = 0;

  connectedCallback() {
    this.start();
  }

  disconnectedCallback() {
    this.#turn += 1;
    super.disconnectedCallback();
  }

  attributeChangedCallback(name, before, now) {
    if (this.isConnected && before !== now) this.start();
  }

  /** Ends what was shown and calls `begin` with the center and a function that tells whether this is still the last start. */
  async start() {
    super.disconnectedCallback();
    const turn = (this.#turn += 1);
    const shared = await this.ready();
    if (!shared || turn !== this.#turn) return;
    this.shared = shared;
    await this.begin(shared, () => turn === this.#turn);
  }
}

/** A failed start in words: what, why, and a way to try again. */
export function failure(problem, again) {
  return h('div', { class: 'tb-note', part: 'error', role: 'alert' }, problem.message,
    again ? h('button', { class: 'tb-button', type: 'button', 'data-size': 'small', onclick: again }, t('list.try_again')) : null);
}
