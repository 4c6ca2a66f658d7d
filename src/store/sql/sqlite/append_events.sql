-- Appends to timelines; an entry whose place is taken is left as it is, and the count of rows tells: then the id of a new task
-- is one that is there already. OR FAIL as in insert_tasks.sql.
INSERT OR FAIL INTO taskbell_events (@events) VALUES @rows ON CONFLICT (task_id, seq) DO NOTHING
