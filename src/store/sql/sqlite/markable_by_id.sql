-- Tasks of an owner that do not carry a mark yet, by id. $4: seen, read, archived. By primary key: the plus signs keep the
-- planner from walking through all tasks of the owner.
SELECT @columns FROM taskbell_tasks t
WHERE t.id @in($3) AND +t.tenant = $1 AND +t.owner = $2
    AND CASE $4 WHEN 'seen' THEN t.seen_at WHEN 'read' THEN t.read_at ELSE t.archived_at END IS NULL
ORDER BY t.id LIMIT $5
