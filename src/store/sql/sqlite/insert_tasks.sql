-- New tasks, one statement a batch.
INSERT INTO taskbell_tasks (@names)
SELECT @json FROM json_each($1) j
