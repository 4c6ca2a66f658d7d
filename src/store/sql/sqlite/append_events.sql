-- Appends to timelines.
INSERT INTO taskbell_events (task_id, seq, at, from_state, to_state, reason, actor, node, attempt, chunk)
SELECT j.value ->> 'task_id', j.value ->> 'seq', j.value ->> 'at', j.value ->> 'from_state', j.value ->> 'to_state',
       j.value ->> 'reason', j.value ->> 'actor', j.value ->> 'node', j.value ->> 'attempt', j.value ->> 'chunk'
FROM json_each($1) j
