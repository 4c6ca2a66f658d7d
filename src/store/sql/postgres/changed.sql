-- Tasks of owners that changed after a head of theirs ($1 to $3), at most $4 of each owner. By taskbell_tasks_head, for each
-- owner apart: an owner who is far behind does not make the others wait.
SELECT @columns
FROM UNNEST(CAST($1 AS TEXT[]), CAST($2 AS TEXT[]), CAST($3 AS BIGINT[])) AS j (tenant, owner, head)
CROSS JOIN LATERAL (
    SELECT c.* FROM taskbell_tasks c
    WHERE c.tenant = j.tenant AND c.owner = j.owner AND c.head > j.head
    ORDER BY c.tenant, c.owner, c.head LIMIT CAST($4 AS BIGINT)
) t
