/**
 * When to try again after a socket was lost: pure rules, so that a table can hold them.
 *
 * First random(0, 2 s), then random(0, min(30 s, 2^n s)): a restarted server must not meet all pages in one second. Spans
 * are milliseconds. Must never give a fixed moment to a visible page, and never zero as a rule.
 */

const FIRST_MS = 2_000;
const LONGEST_MS = 30_000;
const HIDDEN_LIMIT_MS = 300_000;
const TOO_MANY = 4429;
/** Closed because we do not speak the server's protocol, or spoke too late. */
export const UNSPOKEN = 4409;

/**
 * How long to wait, or null for not at all: until somebody looks. `attempt` counts from 0 and goes back there after 10 s of
 * stable life; `drain` is what a server that shuts down asked for; `code` is the close code; `random` is in [0, 1).
 */
export function retryDelay({ attempt, hidden = false, hiddenMs = 0, mayConnect = true, busy = false, drain = null, code = 0, signedOut = false }, random = Math.random()) {
  if (signedOut || !mayConnect) return null;
  if (hidden) return hiddenMs > HIDDEN_LIMIT_MS && !busy ? null : LONGEST_MS;
  if (drain) return drain.retryMs + random * drain.spreadMs;
  if (code === TOO_MANY || code === UNSPOKEN) return LONGEST_MS;
  return random * (attempt === 0 ? FIRST_MS : Math.min(LONGEST_MS, 1000 * 2 ** attempt));
}
