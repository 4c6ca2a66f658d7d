-- The bytes held by tenants. Inside the writer's transaction. By primary key.
SELECT t.tenant, t.bytes FROM taskbell_log_tenant t WHERE t.tenant @in($1)
