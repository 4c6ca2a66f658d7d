-- The holders of idempotency keys, locked in the order of the keys. By primary key.
SELECT k.tenant, k.action, k.kind, k.idempotency_key, k.task_id, k.keep_ms, k.fingerprint
FROM UNNEST(CAST($1 AS TEXT[]), CAST($2 AS TEXT[]), CAST($3 AS TEXT[]), CAST($4 AS TEXT[]))
    AS j (tenant, action, kind, idempotency_key)
JOIN taskbell_keys k ON k.tenant = j.tenant AND k.action = j.action AND k.kind = j.kind
    AND k.idempotency_key = j.idempotency_key
ORDER BY k.tenant, k.action, k.kind, k.idempotency_key FOR UPDATE OF k
