-- Keeps the facts of a file.
INSERT INTO taskbell_files (id, tenant, owner, task_id, name, content_type, size_bytes, sha256, created_at, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
