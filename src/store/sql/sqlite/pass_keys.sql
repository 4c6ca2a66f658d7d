-- Passes idempotency keys, whose rows are locked, on to other tasks. By primary key.
UPDATE taskbell_keys SET task_id = j.value ->> 4, keep_ms = j.value ->> 5, fingerprint = j.value ->> 6
FROM json_each($1) j
WHERE taskbell_keys.tenant = j.value ->> 0 AND taskbell_keys.action = j.value ->> 1 AND taskbell_keys.kind = j.value ->> 2
    AND taskbell_keys.idempotency_key = j.value ->> 3
