-- All that may change of tasks, one statement a batch. Documents live apart, so a change of state never rewrites them.
UPDATE taskbell_tasks SET @set
FROM json_each($1) j
WHERE taskbell_tasks.id = j.value ->> 'id'
