-- Gives idempotency keys that nobody held to tasks. The primary key decides: where another transaction has given one away
-- meanwhile, this one waits for its end and leaves the row as it is; the count of rows tells. Keys come in one order.
INSERT INTO taskbell_keys (tenant, action, kind, idempotency_key, task_id, keep_ms, fingerprint)
SELECT * FROM UNNEST(CAST($1 AS TEXT[]), CAST($2 AS TEXT[]), CAST($3 AS TEXT[]), CAST($4 AS TEXT[]), CAST($5 AS TEXT[]),
    CAST($6 AS BIGINT[]), CAST($7 AS TEXT[]))
ON CONFLICT (tenant, action, kind, idempotency_key) DO NOTHING
