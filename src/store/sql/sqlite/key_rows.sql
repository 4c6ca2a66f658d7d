-- The holders of idempotency keys, by primary key: CROSS JOIN keeps the planner from turning the loops around.
SELECT k.tenant, k.action, k.kind, k.idempotency_key, k.task_id, k.keep_ms, k.fingerprint
FROM json_each($1) j
CROSS JOIN taskbell_keys k ON k.tenant = j.value ->> 0 AND k.action = j.value ->> 1 AND k.kind = j.value ->> 2
    AND k.idempotency_key = j.value ->> 3
