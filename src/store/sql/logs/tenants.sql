-- The bytes held by the tenants in a JSON array of names. Inside the writer's transaction; takes the primary key.
SELECT t.tenant, t.bytes
FROM json_each($1) AS asked JOIN taskbell_log_tenant AS t ON t.tenant = asked.value
