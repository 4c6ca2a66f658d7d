-- Stores documents, the newest wins. `WHERE true` keeps the parser from reading ON as a join.
INSERT INTO taskbell_documents (task_id, kind, body)
SELECT j.value ->> 'task_id', j.value ->> 'kind', j.value ->> 'body' FROM json_each($1) j WHERE true
ON CONFLICT (task_id, kind) DO UPDATE SET body = excluded.body
