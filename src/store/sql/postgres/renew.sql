-- Lengthens the leases a node holds; rows with another token are not touched, which tells the node that it lost them.
-- Locks in id order. By primary key.
WITH held AS (
    SELECT t.id FROM taskbell_tasks t
    JOIN UNNEST(CAST($3 AS TEXT[]), CAST($4 AS BIGINT[])) AS j (id, token) ON t.id = j.id AND t.fencing_token = j.token
    WHERE t.lease_owner = $2 AND t.lease_until IS NOT NULL
    ORDER BY t.id FOR UPDATE OF t
)
UPDATE taskbell_tasks t SET lease_until = $1 FROM held WHERE t.id = held.id RETURNING t.id, t.fencing_token, t.state
