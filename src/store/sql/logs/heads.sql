-- The heads of tasks by id. Inside the writer's transaction, so nobody changes them meanwhile. By primary key.
SELECT h.task, h.tenant, h.token, h.newest, h.bytes, h.dropped FROM taskbell_log_head h WHERE h.task @in($1)
