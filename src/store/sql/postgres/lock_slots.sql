-- Locks concurrency keys against other changes of their slots until the end of the transaction: those of tasks by id ($1)
-- and those that are named ($2 tenants, $3 keys). Advisory locks, for a key that nobody holds has no row. Keys share 1,024
-- locks, so that a large batch stays within what the server keeps; taken in one order, so that nobody waits in a circle.
SELECT COUNT(*) FROM (
    SELECT pg_advisory_xact_lock(20250, b.bucket) FROM (
        SELECT DISTINCT CAST(hashtextextended(k.tenant || chr(10) || k.concurrency_key, 0) & 1023 AS INTEGER) AS bucket
        FROM (
            SELECT t.tenant, t.concurrency_key FROM taskbell_tasks t
            WHERE t.id @in($1) AND t.concurrency_key IS NOT NULL
            UNION ALL
            SELECT j.tenant, j.concurrency_key
            FROM UNNEST(CAST($2 AS TEXT[]), CAST($3 AS TEXT[])) AS j (tenant, concurrency_key)
        ) k
        ORDER BY bucket
    ) b
    OFFSET 0
) locked
