-- Documents of tasks, of the kinds that are asked for. By primary key.
SELECT d.task_id, d.kind, d.body FROM taskbell_documents d WHERE d.task_id @in($1) AND d.kind @in($2)
