-- Writes back what tenants hold: a JSON array of [tenant, bytes], absolute values. The condition is there because the
-- grammar would take ON for a join.
INSERT INTO taskbell_log_tenant (tenant, bytes)
SELECT value ->> 0, value ->> 1 FROM json_each($1) WHERE 1 = 1
ON CONFLICT (tenant) DO UPDATE SET bytes = excluded.bytes
