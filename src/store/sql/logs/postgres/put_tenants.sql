-- Writes back what tenants hold, absolute values. Arrays, one a column.
INSERT INTO taskbell_log_tenant (tenant, bytes) SELECT * FROM UNNEST(CAST($1 AS TEXT[]), CAST($2 AS BIGINT[]))
ON CONFLICT (tenant) DO UPDATE SET bytes = excluded.bytes
