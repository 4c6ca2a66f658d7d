/**
 * A form from a JSON Schema: labels from `title`, help from `description`, required marks, and faults beside their field.
 *
 * Knows strings (also `enum`, `format: date`, `format: file`, long texts), numbers, integers and booleans; a property of
 * another type is a text field that takes JSON. The browser's own validation is off: faults are written beside the field
 * in the page's language, and the server's word (422 `errors: [{path, message}]`) is final. Must never send a field that
 * the schema does not name, and never send while an upload is under way.
 */
import { Problem, upload } from './api.js';
import { h, icon, setAttribute, setText } from './dom.js';
import { localized, percent, size, t } from './i18n.js';

let count = 0;

/** A form for a schema. `onSubmit(params)` may throw a `Problem`; its faults go beside their fields. */
export function makeForm(schema, { onSubmit, submitLabel, onClose }) {
  const required = new Set(schema?.required ?? []);
  const fields = Object.entries(schema?.properties ?? {}).map(([name, property]) => makeField(name, property, required.has(name)));
  const fault = h('div', { class: 'tb-error', role: 'alert', hidden: true });
  const submit = h('button', { class: 'tb-button', type: 'submit', 'data-look': 'primary' }, submitLabel);
  const close = h('button', { class: 'tb-button', type: 'button', onclick: onClose }, t('form.close'));
  const form = h('form', { novalidate: true },
    h('div', { class: 'tb-dialog-body' }, fields.length ? fields.map((field) => field.element) : h('p', {}, t('form.no_input')), fault),
    h('div', { class: 'tb-dialog-foot' }, close, submit));
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    if (submit.hasAttribute('data-pending')) return;
    setAttribute(fault, 'hidden', true);
    const params = collect(fields);
    if (!params) return;
    submit.setAttribute('data-pending', '');
    setText(submit, t('form.starting'));
    try {
      await onSubmit(params);
    } catch (problem) {
      showFaults(problem, fields, fault);
    } finally {
      submit.removeAttribute('data-pending');
      setText(submit, submitLabel);
    }
  });
  return { element: form, first: fields[0]?.control ?? submit };
}

/** The values, or null when a field has a fault; the first one gets the focus. */
function collect(fields) {
  const params = {};
  let faulty = null;
  for (const field of fields) {
    const { value, error } = field.read();
    field.fault(error ?? null);
    if (error) faulty ??= field;
    else if (value !== undefined) params[field.name] = value;
  }
  faulty?.control.focus();
  return faulty ? null : params;
}

function showFaults(problem, fields, fault) {
  let first = null;
  const rest = [];
  for (const { path, message } of problem.errors ?? []) {
    const name = String(path).replace(/^\/?(params)?[./]?/, '').split(/[./]/)[0];
    const field = fields.find((each) => each.name === name);
    if (!field) rest.push(message);
    else {
      field.fault(message);
      first ??= field;
    }
  }
  const text = rest.length ? rest.join(' ') : first ? t('form.error.form') : problem instanceof Problem ? problem.message : t('error.network');
  fault.replaceChildren(icon('failed'), h('span', {}, problem.requestId && !first ? `${text} ${t('error.request', { id: problem.requestId })}` : text));
  setAttribute(fault, 'hidden', false);
  first?.control.focus();
}

function makeField(name, property, required) {
  count += 1;
  const id = `tb-field-${count}`;
  const label = localized(property.title) || name;
  const kind = kindOf(property);
  const made = kind === 'file' ? fileControl(id) : plainControl(id, kind, property);
  const help = property.description ? h('span', { class: 'tb-help', id: `${id}-help` }, localized(property.description)) : null;
  const errorText = h('span');
  const error = h('span', { class: 'tb-error', id: `${id}-error`, hidden: true }, icon('failed'), errorText);
  const mark = required && kind !== 'boolean' ? h('span', { class: 'tb-required', 'aria-hidden': 'true' }, '*') : null;
  const { control } = made;
  setAttribute(control, 'aria-required', required && kind !== 'boolean' ? 'true' : null);
  setAttribute(control, 'aria-describedby', [help && `${id}-help`, `${id}-error`].filter(Boolean).join(' '));
  const element = kind === 'boolean'
    ? h('div', { class: 'tb-field' }, h('label', { class: 'tb-check' }, control, h('span', {}, label)), help, error)
    : h('div', { class: 'tb-field' }, h('label', { for: id }, label, mark), made.element ?? control, help, error);
  return {
    name, element, control,
    read: () => read(kind, property, required, made),
    fault(message) {
      setAttribute(error, 'hidden', !message);
      setAttribute(control, 'aria-invalid', message ? 'true' : null);
      setText(errorText, message ?? '');
    },
  };
}

function kindOf(property) {
  if (Array.isArray(property.enum)) return 'enum';
  const type = Array.isArray(property.type) ? property.type.find((each) => each !== 'null') : property.type;
  if (type === 'string' && ['file', 'date'].includes(property.format)) return property.format;
  return ['string', 'number', 'integer', 'boolean'].includes(type) ? type : 'json';
}

function plainControl(id, kind, property) {
  if (kind === 'boolean') {
    const control = h('input', { id, type: 'checkbox' });
    control.checked = property.default === true;
    return { control };
  }
  if (kind === 'enum') {
    const options = property.enum.map((value, at) => h('option', { value: at, selected: value === property.default }, optionLabel(property, value, at)));
    const blank = property.default === undefined ? h('option', { value: '' }, t('form.choose')) : null;
    return { control: h('select', { id, class: 'tb-input' }, blank, options) };
  }
  const long = kind === 'json' || (kind === 'string' && (property.maxLength ?? 0) > 200);
  const type = { number: 'text', integer: 'text', date: 'date' }[kind] ?? 'text';
  const control = long
    ? h('textarea', { id, class: 'tb-input', rows: 4 })
    : h('input', { id, class: 'tb-input', type, inputmode: { number: 'decimal', integer: 'numeric' }[kind] ?? null, autocomplete: 'off' });
  if (property.default !== undefined) control.value = kind === 'json' ? JSON.stringify(property.default) : String(property.default);
  if (property.examples?.length) control.placeholder = String(property.examples[0]);
  return { control };
}

function optionLabel(property, value, at) {
  return localized(property.enumTitles?.[at]) || String(value);
}

/** A file is sent at once; what the form sends is its id. Dropping and choosing are the same. */
function fileControl(id) {
  const state = { id: null, busy: null };
  const control = h('input', { id, class: 'tb-visually-hidden', type: 'file' });
  const text = h('strong', {}, t('form.file.drop'));
  const bar = h('progress', { class: 'tb-bar', max: '100', value: '0', hidden: true });
  const element = h('label', { class: 'tb-drop', for: id }, icon('upload'), text, bar, control);
  const send = async (file) => {
    state.busy?.abort();
    const abort = new AbortController();
    Object.assign(state, { id: null, busy: abort });
    setAttribute(bar, 'hidden', false);
    try {
      const done = await upload(file, (share) => {
        bar.value = share * 100;
        setText(text, t('form.file.uploading', { name: file.name, percent: percent(Math.floor(share * 100)) }));
      }, abort.signal);
      Object.assign(state, { id: done.id, busy: null });
      setText(text, t('form.file.ready', { name: done.name, size: size(done.size) }));
    } catch (problem) {
      if (state.busy !== abort) return;
      state.busy = null;
      setText(text, t('form.file.failed', { name: file.name, reason: problem.message }));
    }
    setAttribute(bar, 'hidden', true);
  };
  control.addEventListener('change', () => control.files[0] && send(control.files[0]));
  element.addEventListener('dragover', (event) => {
    event.preventDefault();
    element.dataset.over = '';
  });
  element.addEventListener('dragleave', () => delete element.dataset.over);
  element.addEventListener('drop', (event) => {
    event.preventDefault();
    delete element.dataset.over;
    if (event.dataTransfer.files[0]) send(event.dataTransfer.files[0]);
  });
  return { control, element, state };
}

function read(kind, property, required, { control, state }) {
  if (kind === 'boolean') return { value: control.checked };
  if (kind === 'file') {
    if (state.busy) return { error: t('form.file.pending') };
    return state.id ? { value: state.id } : missing(required);
  }
  const text = control.value.trim();
  if (text === '') return missing(required);
  if (kind === 'enum') return { value: property.enum[Number(control.value)] };
  if (kind === 'number' || kind === 'integer') return readNumber(kind, property, text);
  if (kind === 'json') {
    try {
      return { value: JSON.parse(text) };
    } catch {
      return { value: text };
    }
  }
  return { value: control.value };
}

function missing(required) {
  return required ? { error: t('form.error.required') } : {};
}

function readNumber(kind, { minimum, maximum }, text) {
  const value = Number(text);
  if (!Number.isFinite(value)) return { error: t('form.error.number') };
  if (kind === 'integer' && !Number.isInteger(value)) return { error: t('form.error.integer') };
  if (value < minimum) return { error: t('form.error.min', { min: minimum }) };
  if (value > maximum) return { error: t('form.error.max', { max: maximum }) };
  return { value };
}
