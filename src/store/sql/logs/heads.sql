-- The heads of the tasks in a JSON array of ids. Inside the writer's transaction, so nobody changes them meanwhile.
-- Takes the primary key.
SELECT h.task, h.tenant, h.token, h.newest, h.bytes, h.dropped
FROM json_each($1) AS asked JOIN taskbell_log_head AS h ON h.task = asked.value
