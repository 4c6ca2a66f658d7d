-- Locks those of the concurrency keys that nobody else has locked, without waiting, and answers the others. The same locks
-- as in lock_slots.sql.
SELECT j.tenant, j.concurrency_key
FROM UNNEST(CAST($1 AS TEXT[]), CAST($2 AS TEXT[])) AS j (tenant, concurrency_key)
WHERE NOT pg_try_advisory_xact_lock(20250, CAST(hashtextextended(j.tenant || chr(10) || j.concurrency_key, 0) & 1023 AS INTEGER))
