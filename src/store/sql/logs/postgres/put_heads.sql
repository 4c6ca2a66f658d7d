-- Writes heads back, absolute values. Arrays, one a column.
INSERT INTO taskbell_log_head (task, tenant, token, newest, bytes, dropped)
SELECT * FROM UNNEST(CAST($1 AS TEXT[]), CAST($2 AS TEXT[]), CAST($3 AS BIGINT[]), CAST($4 AS BIGINT[]),
    CAST($5 AS BIGINT[]), CAST($6 AS BIGINT[]))
ON CONFLICT (task) DO UPDATE SET
    tenant = excluded.tenant, token = excluded.token, newest = excluded.newest,
    bytes = excluded.bytes, dropped = excluded.dropped
