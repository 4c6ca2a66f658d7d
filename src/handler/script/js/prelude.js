// What a script sees of the host: `task`, `cx` and `console`, made in the script's own realm before its first line runs.
// Everything here is taken from the realm while it is still untouched, so a script that rewrites built-ins confuses only
// itself. The host's functions are reached through this closure alone; what they are given is text and numbers.
(host, chunkText) => {
  "use strict";
  const { stringify, parse } = JSON;
  const { create, freeze } = Object;
  const { apply } = Reflect;
  const { isFinite } = Number;
  const { slice, toWellFormed } = String.prototype;
  const Text = String, Num = Number, Later = Promise, Failure = Error;
  const { get, set } = WeakMap.prototype;

  // Half a surrogate pair is no text outside of JavaScript.
  const whole = (text) => apply(toWellFormed, text, []);
  const cut = (text, chars) => whole(apply(slice, text, [0, chars]));

  const { task, ...chunk } = parse(chunkText, (_, value) => freeze(value));

  const words = (value) => {
    try {
      if (typeof value !== "object" || value === null) return Text(value);
      if (value instanceof Failure) return `${value}\n${value.stack}`;
      return stringify(value) ?? Text(value);
    } catch {
      return "(a value that cannot be shown)";
    }
  };
  const log = (level, values) => {
    let line = "";
    for (let i = 0; i < values.length; i++) line += (i > 0 ? " " : "") + cut(words(values[i]), host.lineChars);
    host.log(level, cut(line, host.lineChars));
  };
  const levels = freeze({ __proto__: null, debug: "debug", info: "info", warn: "warn", error: "error" });
  const console = { log: (...values) => log("info", values) };
  for (const level in levels) console[level] = (...values) => log(level, values);

  // Numbers that JSON does not have go over as text, so that they are told as faults and not lost as null.
  const fields = ["current", "total", "unit", "phase", "message"];
  const pick = (value) => {
    if (typeof value === "number") return isFinite(value) ? value : Text(value);
    if (typeof value === "string") return cut(value, host.lineChars);
    return value === null ? null : true;
  };
  const progress = (report) => {
    const picked = create(null);
    if (typeof report === "object" && report !== null) {
      for (let i = 0; i < fields.length; i++) {
        const value = report[fields[i]];
        if (value !== undefined) picked[fields[i]] = pick(value);
      }
    } else {
      picked.current = pick(report);
    }
    host.progress(stringify(picked));
  };

  // Values for the host as JSON; half a surrogate pair is made whole, what JSON does not have is null.
  const encoded = (value) => stringify(value, (_, part) => (typeof part === "string" ? whole(part) : part)) ?? "null";

  // Which budget an error of a nested run stands for; a script can throw such an error on, and cannot make one.
  const hits = new WeakMap();
  const refused = (why) => {
    const failure = new Failure(why.message);
    failure.code = why.code;
    failure.permanent = why.permanent;
    if (why.stack) failure.stack = why.stack + failure.stack;
    if (why.limit) {
      failure.limit = freeze(why.limit);
      apply(set, hits, [failure, why.hit]);
    }
    return failure;
  };
  // What came of asking the host: the value, or a throw.
  const given = (came, text) => {
    if (came === "slept") return undefined;
    if (came === "text") return text;
    if (came === "json") return parse(text);
    throw refused(parse(text));
  };
  const waiting = create(null);
  const wait = (ask) => new Later((resolve, reject) => { waiting[ask] = { resolve, reject }; });
  const settle = (ask, came, text) => {
    const { resolve, reject } = waiting[ask];
    delete waiting[ask];
    let value;
    try {
      value = given(came, text);
    } catch (failure) {
      return reject(failure);
    }
    resolve(value);
  };
  // Asks the server: `later` answers with a promise, `now` when the answer is there.
  const later = (name, value) => wait(host.call(name, encoded(value)));
  const now = (name, value) => {
    const got = host.callNow(name, encoded(value));
    return given(got[0], got[1]);
  };
  // A request to a listed host. A body that is no text goes as JSON.
  const fetch = async (url, init) => {
    const { method, headers, body, timeoutMs } = init ?? {};
    const isJson = body !== undefined && body !== null && typeof body !== "string";
    const lines = create(null);
    if (headers) for (const name in headers) lines[name] = Text(headers[name]);
    const got = await later("fetch", {
      __proto__: null,
      url: Text(url),
      method: method === undefined ? null : Text(method),
      headers: lines,
      body: isJson ? encoded(body) : body ?? null,
      isJson,
      timeoutMs: timeoutMs === undefined ? null : Num(timeoutMs),
    });
    return freeze({
      status: got.status,
      ok: got.status >= 200 && got.status < 300,
      headers: freeze(got.headers),
      text: async () => got.body,
      json: async () => parse(got.body),
    });
  };
  const nested = (key, params) => {
    const got = host.run(cut(Text(key), 300), encoded(params));
    return given(got[0], got[1]);
  };

  // The tables of the pack by their names, each with what it can be asked.
  const questions = ["find", "get", "count", "insert", "update", "delete"];
  const tables = create(null);
  const named = parse(host.tables);
  for (let i = 0; i < named.length; i++) {
    const table = named[i], asked = create(null);
    for (let n = 0; n < questions.length; n++) {
      const method = questions[n];
      asked[method] = (argument) => later("table", { method, table, argument: argument ?? null });
    }
    tables[table] = freeze(asked);
  }
  freeze(tables);

  const cx = freeze({
    checkpoint: chunk.checkpoint,
    chunk: chunk.chunk,
    attempt: chunk.attempt,
    fencingToken: chunk.fencingToken,
    lastError: chunk.lastError,
    deadline: chunk.deadline,
    progressSoFar: chunk.progress,
    progress,
    log: (text, level) => log(levels[level] ?? "info", [text]),
    stopRequested: () => host.stopRequested(),
    leaseIsCurrent: () => now("lease"),
    readFile: (id) => later("file", cut(Text(id), 300)),
    submit: (child) => now("submit", child ?? null),
    children: (after) => later("children", after ?? null),
    fetch,
    run: async (key, params) => nested(key, params),
    tables,
    sleep: (ms) => wait(host.sleep(Num(ms))),
  });
  globalThis.console = freeze(console);

  // The answer as JSON; undefined when there is none.
  const counted = freeze({ __proto__: null, current: true, total: true, nextDelaySeconds: true });
  const encode = (answer) => {
    let root;
    return stringify(answer, function (key, value) {
      if (key === "" && root === undefined) root = value;
      if (typeof value === "string") return whole(value);
      if (typeof value === "number" && !isFinite(value) && this === root && counted[key]) return Text(value);
      return value;
    });
  };

  const describe = (thrown) => {
    const of = (key) => {
      try { return thrown[key]; } catch { return undefined; }
    };
    const text = (value) => (value === undefined ? "" : cut(typeof value === "string" ? value : words(value), 8000));
    const code = of("code");
    return stringify({
      name: text(of("name")),
      message: text(of("message") ?? thrown),
      stack: text(of("stack")),
      code: typeof code === "string" && code !== "" ? cut(code, 100) : null,
      permanent: of("permanent") === true,
      hit: (typeof thrown === "object" ? apply(get, hits, [thrown]) : null) ?? null,
    });
  };

  // `await` and not plain: returning a promise would look up a `then` that the script may have replaced.
  // `kit` is for the other form of scripts, see v8.js.
  const kit = freeze({ now, nested, log, progress, newGuid: () => host.newGuid(), newUlid: () => host.newUlid() });
  return freeze({ call: async (run) => await run(task, cx), settle, encode, describe, kit });
}
