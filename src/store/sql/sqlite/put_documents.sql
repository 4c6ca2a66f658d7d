-- Stores documents, the newest wins. OR FAIL as in insert_tasks.sql.
INSERT OR FAIL INTO taskbell_documents (task_id, kind, body) VALUES @rows
ON CONFLICT (task_id, kind) DO UPDATE SET body = excluded.body
