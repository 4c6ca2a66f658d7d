-- Lets this transaction be silent while its script computes, for as long as a chunk may take and a little more; the
-- session's own limit is for the engine's transactions, which do not wait for scripts.
SELECT set_config('idle_in_transaction_session_timeout', $1, true)
