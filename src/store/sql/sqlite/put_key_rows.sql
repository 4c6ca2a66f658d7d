-- Gives idempotency keys to tasks.
INSERT INTO taskbell_keys (tenant, action, kind, idempotency_key, task_id, keep_ms, fingerprint)
SELECT j.value ->> 0, j.value ->> 1, j.value ->> 2, j.value ->> 3, j.value ->> 4, j.value ->> 5, j.value ->> 6
FROM json_each($1) j WHERE true
ON CONFLICT (tenant, action, kind, idempotency_key)
DO UPDATE SET task_id = excluded.task_id, keep_ms = excluded.keep_ms, fingerprint = excluded.fingerprint
