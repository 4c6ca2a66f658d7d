-- Uploads that a task uses stay at least until $3. By primary key.
UPDATE taskbell_files SET expires_at = $3
WHERE tenant = $1 AND task_id IS NULL AND expires_at < $3 AND id @in($2)
