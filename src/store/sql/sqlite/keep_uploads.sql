-- Uploads that a task uses stay at least until $3. Rows by primary key. json_each and the scalar MAX are SQLite's.
UPDATE taskbell_files SET expires_at = MAX(expires_at, $3)
WHERE tenant = $1 AND task_id IS NULL AND expires_at IS NOT NULL AND id IN (SELECT j.value FROM json_each($2) j)
