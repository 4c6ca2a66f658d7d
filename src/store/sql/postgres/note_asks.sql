-- Notes that workers ask for actions now. The rows come in one order, so two nodes never wait for each other in a circle.
INSERT INTO taskbell_worker_asks (action, tenant, asked_at)
SELECT j.action, j.tenant, CAST($3 AS BIGINT)
FROM UNNEST(CAST($1 AS TEXT[]), CAST($2 AS TEXT[])) AS j (tenant, action)
ON CONFLICT (action, tenant) DO UPDATE SET asked_at = excluded.asked_at
