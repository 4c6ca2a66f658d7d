-- Makes this transaction the only one that writes logs, as the one writer of a file would be: heads and what tenants hold
-- are read, changed and written back. Its commit need not survive a crash of the server; a log is no promise.
SELECT pg_advisory_xact_lock(20250, 100001), set_config('synchronous_commit', 'off', true)
