-- Notes that workers ask for actions now.
INSERT INTO taskbell_worker_asks (action, tenant, asked_at)
SELECT j.value ->> 1, j.value ->> 0, $2 FROM json_each($1) j WHERE true
ON CONFLICT (action, tenant) DO UPDATE SET asked_at = excluded.asked_at
