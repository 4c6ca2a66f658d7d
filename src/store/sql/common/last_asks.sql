-- When workers last asked for actions. By primary key.
SELECT a.tenant, a.action, a.asked_at FROM taskbell_worker_asks a WHERE a.action @in($1)
