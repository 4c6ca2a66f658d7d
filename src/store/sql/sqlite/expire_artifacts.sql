-- Files of deleted tasks end with them: the next clean-up takes them.
UPDATE taskbell_files SET expires_at = 0 WHERE task_id IN (SELECT j.value FROM json_each($1) j)
