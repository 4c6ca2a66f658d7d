-- Stores documents, the newest wins.
INSERT INTO taskbell_documents (task_id, kind, body) VALUES @rows
ON CONFLICT (task_id, kind) DO UPDATE SET body = excluded.body
