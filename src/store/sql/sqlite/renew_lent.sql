-- Lengthens leases of chunks that workers outside run until $1, or the end of the chunk's time where that is sooner; one whose
-- time is over at $2 is not touched. $3 = only in this tenant.
UPDATE taskbell_tasks SET lease_until = MIN($1, taskbell_tasks.chunk_until)
FROM json_each($4) j
WHERE taskbell_tasks.id = j.value ->> 0 AND taskbell_tasks.fencing_token = j.value ->> 1
    AND taskbell_tasks.lease_until IS NOT NULL AND taskbell_tasks.chunk_until > $2
    AND ($3 IS NULL OR taskbell_tasks.tenant = $3)
RETURNING taskbell_tasks.id, taskbell_tasks.fencing_token, taskbell_tasks.state
