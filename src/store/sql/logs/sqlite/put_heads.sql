-- Writes heads back: a JSON array of [task, tenant, token, newest, bytes, dropped], absolute values. The condition is there
-- because the grammar would take ON for a join.
INSERT INTO taskbell_log_head (task, tenant, token, newest, bytes, dropped)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5
FROM json_each($1) WHERE 1 = 1
ON CONFLICT (task) DO UPDATE SET
    tenant = excluded.tenant, token = excluded.token, newest = excluded.newest,
    bytes = excluded.bytes, dropped = excluded.dropped
