-- Gives idempotency keys that nobody held to tasks. The primary key decides: a key that has got a row meanwhile is left as
-- it is, and the count of rows tells.
INSERT INTO taskbell_keys (tenant, action, kind, idempotency_key, task_id, keep_ms, fingerprint)
SELECT j.value ->> 0, j.value ->> 1, j.value ->> 2, j.value ->> 3, j.value ->> 4, j.value ->> 5, j.value ->> 6
FROM json_each($1) j WHERE true
ON CONFLICT (tenant, action, kind, idempotency_key) DO NOTHING
