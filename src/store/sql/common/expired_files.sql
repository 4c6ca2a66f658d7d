-- Files whose time is over. Index: taskbell_files_expiry.
SELECT f.id, f.tenant, f.owner, f.task_id, f.name, f.content_type, f.size_bytes, f.sha256, f.created_at, f.expires_at
FROM taskbell_files f WHERE f.expires_at IS NOT NULL AND f.expires_at <= $1 ORDER BY f.expires_at LIMIT $2
