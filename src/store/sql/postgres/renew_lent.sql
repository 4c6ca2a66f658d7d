-- Lengthens leases of chunks that workers outside run until $1, or the end of the chunk's time where that is sooner; one whose
-- time is over at $2 is not touched. $3 = only in this tenant. Locks in id order. By primary key.
WITH held AS (
    SELECT t.id FROM taskbell_tasks t
    JOIN UNNEST(CAST($4 AS TEXT[]), CAST($5 AS BIGINT[])) AS j (id, token) ON t.id = j.id AND t.fencing_token = j.token
    WHERE t.lease_until IS NOT NULL AND t.chunk_until > $2 AND (CAST($3 AS TEXT) IS NULL OR t.tenant = $3)
    ORDER BY t.id FOR UPDATE OF t
)
UPDATE taskbell_tasks t SET lease_until = LEAST(CAST($1 AS BIGINT), t.chunk_until)
FROM held WHERE t.id = held.id RETURNING t.id, t.fencing_token, t.state
