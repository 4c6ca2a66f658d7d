// What a script finds whose file is the body of a function: `V8`, `DateNow` and `console`, as scripts of that kind expect
// them. `kit` is what the prelude offers, `world` what of the server is told to such scripts. Objects are plain and may be
// changed; the realm is the chunk's alone. What is not here is `undefined`, so that a script can look for it.
(kit, chunkText, worldText) => {
  "use strict";
  const { parse } = JSON;
  const { isArray } = Array;
  const { keys } = Object;
  const { apply } = Reflect;
  const { now } = Date;
  const { replace, padStart, startsWith } = String.prototype;
  const Text = String, Num = Number, Instant = Date;
  const { task, ...chunk } = parse(chunkText);
  const world = parse(worldText);

  const isObject = (value) => typeof value === "object" && value !== null && !isArray(value);
  const given = isObject(task.params) ? task.params : {};
  let Param = given;
  if (!world.nested) {
    // What says "the server says so" comes from the server, whatever was submitted under its name.
    Param = {};
    const own = ["_CurrentUser", "_TrustedServerInvocation"];
    for (const name of keys(given)) {
      if (!apply(startsWith, name, ["_BackgroundTask"]) && !own.includes(name)) Param[name] = given[name];
    }
    const { current, total } = chunk.progress;
    const key = task.idempotencyKey ?? task.id;
    Param.OsClient = task.tenant;
    Param._InvokeType = "Client";
    Param._TrustedServerInvocation = true;
    Param._BackgroundTask = {
      Id: task.id,
      IdempotencyKey: key,
      FencingToken: chunk.fencingToken,
      BusinessTable: task.record?.type ?? null,
      BusinessId: task.record?.id ?? null,
      BusinessStatusField: null,
      BusinessTaskIdField: null,
      BusinessProgressField: null,
      BusinessEtaField: null,
      Progress: total > 0 ? Math.min(99, Math.floor((current * 100) / total)) : 0,
      Current: current,
      Total: total,
    };
    Param._BackgroundTaskId = task.id;
    Param._BackgroundTaskTitle = task.title;
    Param._BackgroundTaskIdempotencyKey = key;
    Param._BackgroundTaskFencingToken = chunk.fencingToken;
    Param._BackgroundTaskAttempt = chunk.attempt;
    if (chunk.checkpoint !== null) Param._BackgroundTaskCheckpoint = chunk.checkpoint;
  }

  // Numbers come as text here and there.
  const counted = (value) => (typeof value === "string" && value.trim() !== "" ? Num(value) : value);
  const UpdateBackgroundTask = (options) => {
    if (!isObject(options)) return { Code: 0, Msg: "UpdateBackgroundTask takes an object" };
    const { Current, Total, Progress } = options;
    const message = options.Msg ?? options.Message;
    const report = {};
    if (Current !== undefined && Current !== null) report.current = counted(Current);
    if (Total !== undefined && Total !== null) report.total = counted(Total);
    if (report.current === undefined && report.total === undefined && Progress !== undefined && Progress !== null) {
      report.current = counted(Progress);
      report.total = 100;
      report.unit = "percent";
    }
    if (message !== undefined && message !== null) report.message = Text(message);
    kit.progress(report);
    for (const lines of [options.Log, options.AppendLog]) {
      if (lines === undefined || lines === null) continue;
      for (const line of isArray(lines) ? lines : [lines]) kit.log("info", [line]);
    }
    return { Code: 1, Msg: "" };
  };

  // A nested script never throws into the one above: it answers, and a limit that it hit says which.
  const Run = (key, params) => {
    const [name, asked] = isObject(key) ? [key.ApiEngineKey, key] : [key, params];
    try {
      return kit.nested(name, asked ?? {});
    } catch (failure) {
      const answer = { Code: 0, Data: null, Msg: failure.message };
      const { limit } = failure;
      if (limit) {
        answer.DataAppend = {
          V8Limit: { Code: failure.code, Limit: limit.limit, Used: limit.used, Path: limit.path },
        };
      }
      return answer;
    }
  };

  const V8 = {
    Param,
    CurrentUser: world.user,
    OsClient: task.tenant,
    Limits: world.limits,
    Method: { UpdateBackgroundTask, NewGuid: () => kit.newGuid(), NewUlid: () => kit.newUlid() },
    ApiEngine: { Run },
  };
  if (world.forms.length > 0) {
    V8.FormEngine = {};
    for (const method of world.forms) {
      V8.FormEngine[method] = (table, options) => kit.now("form", { method, args: [table, options] });
    }
  }

  const digits = (value, length) => apply(padStart, Text(value), [length, "0"]);
  const DateNow = (format) => {
    const at = new Instant(now() + world.utcOffsetSeconds * 1000);
    const parts = {
      yyyy: () => digits(at.getUTCFullYear(), 4),
      yy: () => digits(at.getUTCFullYear() % 100, 2),
      MM: () => digits(at.getUTCMonth() + 1, 2),
      M: () => Text(at.getUTCMonth() + 1),
      dd: () => digits(at.getUTCDate(), 2),
      d: () => Text(at.getUTCDate()),
      HH: () => digits(at.getUTCHours(), 2),
      H: () => Text(at.getUTCHours()),
      hh: () => digits(at.getUTCHours() % 12 || 12, 2),
      h: () => Text(at.getUTCHours() % 12 || 12),
      mm: () => digits(at.getUTCMinutes(), 2),
      m: () => Text(at.getUTCMinutes()),
      ss: () => digits(at.getUTCSeconds(), 2),
      s: () => Text(at.getUTCSeconds()),
      fff: () => digits(at.getUTCMilliseconds(), 3),
    };
    const wanted = typeof format === "string" && format !== "" ? format : "yyyy-MM-dd HH:mm:ss";
    return apply(replace, wanted, [/yyyy|yy|MM?|dd?|HH?|hh?|mm?|ss?|fff/g, (part) => parts[part]()]);
  };

  globalThis.V8 = V8;
  globalThis.DateNow = DateNow;
}
