-- Tasks that are as this process has written them, locked in id order as in lock_tasks.sql, but for those that somebody else
-- has locked. By primary key.
SELECT t.id FROM @rows
JOIN taskbell_tasks t ON t.id = v.column1
WHERE t.state = v.column2 AND t.revision = v.column3 AND t.head = v.column4 AND t.fencing_token = v.column5
    AND t.updated_at = v.column6
ORDER BY t.id FOR UPDATE OF t SKIP LOCKED
