-- Forgets files.
DELETE FROM taskbell_files WHERE id IN (SELECT j.value FROM json_each($1) j)
