-- Stores documents, the newest wins. Arrays, one a column.
INSERT INTO taskbell_documents (task_id, kind, body) SELECT * FROM @rows
ON CONFLICT (task_id, kind) DO UPDATE SET body = excluded.body
