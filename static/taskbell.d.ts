/**
 * Types of `taskbell.js`, the script that embeds taskbell's widgets into pages of other applications.
 *
 * With `import '…/taskbell.js'` in scope, elements, their properties and their events are known to `document`. Instants are
 * RFC 3339 texts in UTC with milliseconds; durations end in `Ms` or `Seconds`. Unknown fields are left out here on purpose:
 * the server may send more, and a program has to ignore what it does not know.
 */

/**
 * The states of a task. `running` lasts from the first claim on, through the planned gaps between two steps; `unknown` is one that
 * only a newer version of the service knows, and nothing can be done about such a task.
 */
export type TaskState =
  | 'queued' | 'blocked' | 'running' | 'pausing' | 'paused' | 'cancelling' | 'succeeded' | 'failed' | 'cancelled' | 'unknown';

/** What the person who looks may do with a task now. */
export type TaskAct = 'cancel' | 'pause' | 'resume' | 'retry' | 'delete';

/** A business record, as its application names it. */
export interface RecordRef {
  /** Such as `price-list`. */
  type: string;
  /** The application's own id. */
  id: string;
  /** The way back into the application, where taskbell knows it. */
  url?: string | null;
}

/** An estimate of the time left. Only `estimated` has figures. */
export interface Eta {
  state: 'none' | 'unknown' | 'estimating' | 'estimated' | 'stalled';
  finishAt?: string | null;
  remainingSeconds?: number | null;
  lowSeconds?: number | null;
  highSeconds?: number | null;
  confidence?: 'low' | 'medium' | 'high' | null;
  basis?: 'measured' | 'history' | null;
}

/** How far a task is. `percent` is null without a total, and 100 only when it has succeeded. */
export interface Progress {
  current: number;
  total: number | null;
  unit: string | null;
  phase: string | null;
  message: string | null;
  percent: number | null;
  ratePerSecond: number | null;
  updatedAt: string | null;
  eta: Eta;
}

/** Why no step runs this moment. */
export interface Waiting {
  reason: 'capacity' | 'delay' | 'retry' | 'scheduled' | 'concurrency' | 'children' | 'paused' | 'no-handler' | 'pack-disabled';
  until: string | null;
  blockedBy: string | null;
  position: number | null;
}

/** Why a task failed. `message` is for the person; `code` is for programs. */
export interface TaskError {
  kind: 'handler' | 'permanent' | 'timeout' | 'deadline' | 'budget' | 'bad-outcome' | 'no-progress' | 'lease-lost' | 'internal';
  code: string;
  message: string;
  retryable: boolean;
  at: string;
}

/** A file that a task has made. */
export interface Artifact {
  id: string;
  name: string;
  size: number;
  contentType: string;
  expiresAt: string | null;
}

/** A task, as lists and pushes tell it. */
export interface Task {
  readonly id: string;
  readonly tenant: string;
  readonly action: string;
  readonly title: string;
  readonly owner: string;
  readonly state: TaskState;
  /** Rises with every visible change; of two tellings the higher one is the newer. */
  readonly revision: number;
  readonly record: RecordRef | null;
  readonly idempotencyKey: string | null;
  readonly concurrencyKey: string | null;
  readonly priority: number;
  readonly progress: Progress;
  readonly waiting: Waiting | null;
  readonly attempt: number;
  readonly maxAttempts: number;
  readonly chunks: number;
  readonly rows: { ok: number; skipped: number; failed: number };
  readonly warnings: string[];
  readonly error: TaskError | null;
  readonly hasResult?: boolean;
  readonly artifacts: Artifact[];
  readonly retryOf: string | null;
  readonly can: TaskAct[];
  readonly seen?: boolean;
  readonly read?: boolean;
  readonly archived?: boolean;
  readonly createdAt: string;
  readonly runAt: string;
  readonly startedAt: string | null;
  readonly finishedAt: string | null;
  readonly updatedAt: string;
}

/** What a click became: the task, and whether it was there before. */
export interface SubmittedTask extends Task {
  /** The holder of the idempotency key: this click made no second task. */
  readonly replayed?: true;
  readonly replay?: { startedBy: string; createdAt: string; suppressed: number };
  /** The holder of the concurrency key, by an action that skips. */
  readonly skipped?: true;
}

/**
 * Gives a token for the signed-in user: a JWT of a configured issuer, or an API key. Asked when one is needed and again
 * before it ends. Null says that nobody is signed in; a rejection says why there is none now, and it is asked again later.
 */
export type GetToken = () => string | null | undefined | Promise<string | null | undefined>;

/** How a page reaches taskbell. */
export interface ConnectOptions {
  /** The address of the service; left out, it is where the script came from. */
  url?: string;
  /** Left out, the session cookie of taskbell's own pages speaks, or a `getToken` that is given later. */
  getToken?: GetToken;
}

/** The tasks that a page knows, as the server last told them. */
export interface Tasks {
  /** Numbers by state, and `unseen` and `attention`; null before the first telling. */
  readonly counts: Readonly<Record<string, number>> | null;
  /** Whether the server has more of the caller's tasks. */
  readonly more: boolean;
  get(id: string): Task | undefined;
  /** Newest first. */
  list(): Task[];
  /** Hears of changes, at most some times a second. Gives the function that ends it. */
  subscribe(listener: (change: { ids: ReadonlySet<string>; replaced: boolean }) => void): () => void;
}

/** The page's one connection. Events: `live` when its state changes. */
export interface Connection extends EventTarget {
  readonly live: 'connecting' | 'live' | 'delayed' | 'reconnecting' | 'offline' | 'signed-out';
  /** The server's instant, in ms since 1970, at which what is shown was last known to be true. */
  readonly trueAt: number | null;
  /** Follows `task:ID` or `record:TYPE:ID` beside the caller's own tasks. Gives the function that ends it. */
  subscribe(topic: string): () => void;
  /** Asks for the truth once; rejects when there is no answer. */
  refresh(): Promise<void>;
}

/** What `connect` gives: all widgets of the page share it. */
export interface Center {
  readonly tasks: Tasks;
  readonly connection: Connection;
  /** Who the token speaks for; undefined until the server has said so. */
  readonly user?: string;
  /** Marks tasks, here and in the other tabs. */
  mark(kind: 'seen' | 'read' | 'archive', ids: string[]): Promise<void>;
  /** Marks all up to what this page was told. */
  markAll(kind: 'seen' | 'read' | 'archive'): Promise<void>;
}

/** The store and the connection without any element; `getToken` given here serves all widgets too. */
export function connect(options?: ConnectOptions): Promise<Center>;

/** Every widget takes the token from a function. The last one that was set speaks for all widgets of the page. */
export interface TaskbellElement extends HTMLElement {
  getToken: GetToken | null;
}

/** `<taskbell-bell>` */
export interface TaskbellBell extends TaskbellElement {
  /** Whether its panel is open. */
  readonly open: boolean;
  /** Opens the panel and puts the focus on a task. */
  show(id: string): Promise<void>;
}

/** `<taskbell-button action record-type record-id params look>`; what stands inside it is its label. */
export interface TaskbellButton extends TaskbellElement {}

/** `<taskbell-progress task>` or `<taskbell-progress record="type:id">` */
export interface TaskbellProgress extends TaskbellElement {}

/** A click was accepted. Bubbles, and leaves shadow roots. */
export type SubmittedEvent = CustomEvent<SubmittedTask>;

/** A task has ended, once for each end. Bubbles, and leaves shadow roots. */
export type EndedEvent = CustomEvent<Task>;

declare global {
  interface HTMLElementTagNameMap {
    'taskbell-bell': TaskbellBell;
    'taskbell-button': TaskbellButton;
    'taskbell-progress': TaskbellProgress;
  }
  interface HTMLElementEventMap {
    'taskbell:submitted': SubmittedEvent;
    'taskbell:ended': EndedEvent;
  }
  interface DocumentEventMap {
    'taskbell:submitted': SubmittedEvent;
    'taskbell:ended': EndedEvent;
  }
}
