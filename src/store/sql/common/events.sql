-- A part of a timeline, by primary key.
SELECT e.task_id, e.seq, e.at, e.from_state, e.to_state, e.reason, e.actor, e.node, e.attempt, e.chunk, e.failure
FROM taskbell_events e WHERE e.task_id = $1 AND e.seq > $2 ORDER BY e.seq LIMIT $3
