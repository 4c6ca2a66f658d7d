-- Passes idempotency keys, whose rows are locked, on to other tasks. By primary key.
UPDATE taskbell_keys SET task_id = v.task_id, keep_ms = v.keep_ms, fingerprint = v.fingerprint
FROM UNNEST(CAST($1 AS TEXT[]), CAST($2 AS TEXT[]), CAST($3 AS TEXT[]), CAST($4 AS TEXT[]), CAST($5 AS TEXT[]),
    CAST($6 AS BIGINT[]), CAST($7 AS TEXT[])) AS v (tenant, action, kind, idempotency_key, task_id, keep_ms, fingerprint)
WHERE taskbell_keys.tenant = v.tenant AND taskbell_keys.action = v.action AND taskbell_keys.kind = v.kind
    AND taskbell_keys.idempotency_key = v.idempotency_key
