// Tidies contacts: e-mail addresses are trimmed and lower-cased, bank accounts (IBAN) are checked by their check digits.
//
// A handler of taskbell as a script. One call is one step: it works on the next `batch` contacts, and says in its answer
// where to go on (`checkpoint`), how far it is and whether there is more. After a crash the step runs again from the last
// checkpoint; it only computes, so nothing can happen twice. See docs/handlers.md.
//
// The demo writes this file anew when it starts. To change it, copy it and name the copy in a configuration of yours.

export default async function (task, cx) {
  const { file, count = 5000, batch = 250, pause = 1 } = task.params;
  const source = file === undefined ? madeUp(count) : csv(await cx.readFile(file));
  const at = cx.checkpoint ?? { next: source.start, done: 0, tidied: 0, bad: 0, examples: [] };
  const total = at.total ?? source.total();

  const step = source.read(at.next, batch);
  const rows = { ok: 0, skipped: 0, failed: 0 };
  const examples = [...at.examples];
  let tidied = at.tidied;
  for (const contact of step.contacts) {
    const email = contact.email.trim().toLowerCase();
    const fault = faultOf(email, contact.iban);
    if (fault) {
      rows.failed += 1;
      if (examples.length < 10) examples.push({ contact: contact.name, fault });
    } else {
      rows.ok += 1;
      if (email !== contact.email) tidied += 1;
    }
  }

  const done = at.done + step.contacts.length;
  const bad = at.bad + rows.failed;
  if (rows.failed > 0) cx.log(`${rows.failed} of contacts ${at.done + 1} to ${done} are faulty`, "warn");
  const progress = { current: done, total, unit: "contacts", phase: "check", message: `${tidied} tidied, ${bad} faulty`, rows };
  if (step.contacts.length === 0 || done >= total) {
    return { hasMore: false, result: { checked: done, tidied, faulty: bad, examples }, ...progress };
  }
  const checkpoint = { next: step.next, done, total, tidied, bad, examples };
  return { hasMore: true, checkpoint, nextDelaySeconds: pause, ...progress };
}

// Why a contact cannot be used, or nothing.
function faultOf(email, iban) {
  if (!/^[^\s@]+@[^\s@.]+(\.[^\s@.]+)+$/.test(email)) return `"${email}" is no e-mail address`;
  if (iban && !isIban(iban)) return `the check digits of ${iban} are wrong`;
}

// ISO 13616: the first four characters move to the end, letters count from 10; the number leaves 1 when divided by 97.
function isIban(text) {
  const iban = text.replace(/\s/g, "").toUpperCase();
  if (!/^[A-Z]{2}\d{2}[A-Z0-9]{11,30}$/.test(iban)) return false;
  return remainder97(iban.slice(4) + iban.slice(0, 4)) === 1;
}

function remainder97(characters) {
  let rest = 0;
  for (const character of characters) {
    const value = parseInt(character, 36);
    rest = (rest * (value > 9 ? 100 : 10) + value) % 97;
  }
  return rest;
}

// Contacts from nothing, the same ones each time: every ninth address needs tidying, some are broken beyond that.
function madeUp(count) {
  const names = ["Anna", "Ben", "Chloé", "David", "Elena", "Felix", "Greta", "Hugo", "李伟", "王芳"];
  const contact = (n) => {
    const name = `${names[n % names.length]} ${n}`;
    let email = `contact${n}@mail.example`;
    if (n % 9 === 0) email = ` Contact${n}@Mail.Example `;
    if (n % 61 === 0) email = `contact${n}@@mail`;
    const account = "37040044" + String((n * 7919) % 10_000_000_000).padStart(10, "0");
    const digits = 98 - remainder97(account + "DE00");
    const wrong = n % 83 === 0 ? 1 : 0;
    return { name, email, iban: `DE${String((digits + wrong) % 100).padStart(2, "0")}${account}` };
  };
  return {
    start: 1,
    total: () => count,
    read: (from, batch) => {
      const contacts = [];
      for (let n = from; n <= count && contacts.length < batch; n += 1) contacts.push(contact(n));
      return { contacts, next: from + contacts.length };
    },
  };
}

// Contacts from a CSV file with the column `email`; `name` and `iban` are taken where they are.
function csv(text) {
  const header = record(text, text.startsWith("\uFEFF") ? 1 : 0);
  const columns = header.fields.map((field) => field.trim().toLowerCase());
  const [name, email, iban] = ["name", "email", "iban"].map((column) => columns.indexOf(column));
  if (email < 0) {
    const error = new Error("File has no column `email`. Choose another file or add the column.");
    error.permanent = true;
    error.code = "missing-column";
    throw error;
  }
  const read = (from, batch) => {
    const contacts = [];
    let next = from;
    while (next < text.length && contacts.length < batch) {
      const { fields, end } = record(text, next);
      next = end;
      if (fields.length > 1 || fields[0].trim() !== "") {
        contacts.push({ name: fields[name] ?? "", email: fields[email] ?? "", iban: fields[iban] ?? "" });
      }
    }
    return { contacts, next };
  };
  return { start: header.end, total: () => read(header.end, Infinity).contacts.length, read };
}

// One record of a CSV text from a place on, and where the next one begins.
function record(text, from) {
  const fields = [];
  let field = "";
  let quoted = false;
  let at = from;
  for (; at < text.length; at += 1) {
    const character = text[at];
    if (quoted) {
      if (character !== '"') field += character;
      else if (text[at + 1] === '"') field += text[(at += 1)];
      else quoted = false;
    } else if (character === '"' && field === "") quoted = true;
    else if (character === ",") {
      fields.push(field);
      field = "";
    } else if (character === "\n") {
      at += 1;
      break;
    } else if (character !== "\r") field += character;
  }
  fields.push(field);
  return { fields, end: at };
}
