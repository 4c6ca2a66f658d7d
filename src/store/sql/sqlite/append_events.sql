-- Appends to timelines.
INSERT INTO taskbell_events (task_id, seq, at, from_state, to_state, reason, actor, node, attempt, chunk) VALUES @rows
