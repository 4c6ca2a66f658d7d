-- Tasks by id, in id order. json_each opens the batch; the writer connection is the lock.
SELECT @columns FROM taskbell_tasks t
WHERE t.id IN (SELECT j.value FROM json_each($1) j)
ORDER BY t.id
