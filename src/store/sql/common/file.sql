-- A file's facts.
SELECT f.id, f.tenant, f.owner, f.task_id, f.name, f.content_type, f.size_bytes, f.sha256, f.created_at, f.expires_at
FROM taskbell_files f WHERE f.id = $1
