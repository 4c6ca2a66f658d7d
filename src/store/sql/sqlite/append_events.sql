-- Appends to timelines. OR FAIL as in insert_tasks.sql.
INSERT OR FAIL INTO taskbell_events (task_id, seq, at, from_state, to_state, reason, actor, node, attempt, chunk) VALUES @rows
