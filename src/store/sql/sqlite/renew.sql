-- Lengthens the leases a node holds; rows with another token are not touched, which tells the node that it lost them.
UPDATE taskbell_tasks SET lease_until = $1
FROM json_each($3) j
WHERE taskbell_tasks.id = j.value ->> 0 AND taskbell_tasks.fencing_token = j.value ->> 1
    AND taskbell_tasks.lease_owner = $2 AND taskbell_tasks.lease_until IS NOT NULL
RETURNING taskbell_tasks.id, taskbell_tasks.fencing_token, taskbell_tasks.state
