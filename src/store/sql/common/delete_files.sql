-- Forgets files. By primary key.
DELETE FROM taskbell_files WHERE id @in($1)
