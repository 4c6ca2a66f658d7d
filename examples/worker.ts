// A pull worker for the action `write-letters`.
declare const process: {
  env: Record<string, string | undefined>;
  pid: number;
  exit(code: number): never;
  once(signal: string, then: () => void): void;
};

type Outcome = Record<string, unknown>;
type Result = "ok" | "stop" | "stale";
interface Chunk {
  task: { id: string; params: { count?: number } };
  chunk: number;
  fencingToken: number;
  checkpoint: { next: number } | null;
  leaseMs: number;
}

const service = `${(process.env.TASKBELL_URL ?? "").replace(/\/$/, "")}/api/v1/worker/`;
const sleep = (ms: number) => new Promise((then) => setTimeout(then, ms));
let busy = false;
let ending = false;

/** Posts, and comes again while the service is busy, restarts or cannot be reached: every call bears that. */
async function call<T>(path: string, body: unknown): Promise<T> {
  for (let pause = 500; ; pause = Math.min(2 * pause, 10_000)) {
    let wait = pause;
    try {
      const answer = await fetch(service + path, {
        method: "POST",
        headers: { authorization: `Bearer ${process.env.TASKBELL_KEY}`, "content-type": "application/json" },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(60_000),
      });
      if (answer.ok) return (await answer.json()) as T;
      if (![408, 429].includes(answer.status) && answer.status < 500) {
        console.error(path, answer.status, await answer.text());
        process.exit(1);
      }
      wait = 1000 * Number(answer.headers.get("retry-after")) || pause;
    } catch {
      // Not reached, or broken off.
    }
    await sleep(wait);
  }
}

/** A chunk in our hands: keeps its lease, and hears of stops. */
class Held {
  stop = false;
  lost = false;
  private readonly name;
  private readonly timer;

  constructor(chunk: Chunk) {
    this.name = { task: chunk.task.id, fencingToken: chunk.fencingToken, chunk: chunk.chunk };
    this.timer = setInterval(() => void this.say("renew", {}), chunk.leaseMs / 3);
  }

  async say(path: string, more: object): Promise<void> {
    const answer = await call<{ items: { result: Result }[] }>(path, { items: [{ ...this.name, ...more }] });
    this.lost ||= answer.items[0].result === "stale";
    this.stop ||= answer.items[0].result !== "ok";
  }

  over(): void {
    clearInterval(this.timer);
  }
}

/** One bounded step, from the checkpoint on. Must bear a repetition. */
async function work(chunk: Chunk, held: Held): Promise<Outcome> {
  const count = chunk.task.params.count ?? 100;
  const start = chunk.checkpoint?.next ?? 0;
  const end = Math.min(start + 20, count);
  let at = start;
  while (at < end && !held.stop) {
    await sleep(10); // Letter number `at` is written here.
    at += 1;
  }
  const told = { current: at, total: count, unit: "letters", rows: { ok: at - start }, log: [`${at} letters are written`] };
  if (at < count) return { hasMore: true, checkpoint: { next: at }, ...told };
  return { hasMore: false, result: { written: count }, ...told };
}

async function run(chunk: Chunk): Promise<void> {
  const held = new Held(chunk);
  let outcome: Outcome;
  try {
    outcome = await work(chunk, held);
  } catch (error) {
    const fail = { code: "crashed", message: "A letter could not be written.", retryable: true, detail: String(error) };
    outcome = { fail };
  }
  held.over();
  if (!held.lost) await held.say("commit", { outcome });
}

// A chunk at hand is brought to its end first.
for (const signal of ["SIGTERM", "SIGINT"]) {
  process.once(signal, () => {
    ending = true;
    if (!busy) process.exit(0);
  });
}

async function main(): Promise<void> {
  const ask = { actions: ["write-letters"], waitMs: 20_000, worker: `letters:${process.pid}` };
  while (!ending) {
    const { chunks } = await call<{ chunks: Chunk[] }>("claim", ask);
    busy = true;
    for (const chunk of chunks) await run(chunk);
    busy = false;
  }
  process.exit(0);
}

void main();
