-- Lengthens the leases a node holds; rows with another token are not touched, which tells the node that it lost them. Nor are
-- those that somebody is writing at this moment, which come without a state: a slow commit must not hold up all the others.
-- Locks in id order. By primary key.
WITH mine AS (
    SELECT t.id, t.fencing_token FROM taskbell_tasks t
    JOIN UNNEST(CAST($3 AS TEXT[]), CAST($4 AS BIGINT[])) AS j (id, token) ON t.id = j.id AND t.fencing_token = j.token
    WHERE t.lease_owner = $2 AND t.lease_until IS NOT NULL
), free AS (
    SELECT t.id FROM taskbell_tasks t JOIN mine ON t.id = mine.id AND t.fencing_token = mine.fencing_token
    WHERE t.lease_owner = $2 AND t.lease_until IS NOT NULL
    ORDER BY t.id FOR UPDATE OF t SKIP LOCKED
), kept AS (
    UPDATE taskbell_tasks t SET lease_until = $1 FROM free WHERE t.id = free.id RETURNING t.id, t.state
)
SELECT mine.id, mine.fencing_token, kept.state FROM mine LEFT JOIN kept ON kept.id = mine.id
