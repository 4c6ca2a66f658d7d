-- Documents of tasks, of the kinds that are asked for.
SELECT d.task_id, d.kind, d.body FROM taskbell_documents d
WHERE d.task_id IN (SELECT j.value FROM json_each($1) j) AND d.kind IN (SELECT k.value FROM json_each($2) k)
