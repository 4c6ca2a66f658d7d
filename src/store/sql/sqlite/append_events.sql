-- Appends to timelines. OR FAIL as in insert_tasks.sql.
INSERT OR FAIL INTO taskbell_events (@events) VALUES @rows
