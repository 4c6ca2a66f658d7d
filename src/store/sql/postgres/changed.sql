-- Tasks of owners that changed after a head of theirs ($1 to $3), at most $4 of each owner. For each owner apart: an owner
-- who is far behind does not make the others wait. Those without a chunk under way by taskbell_tasks_log, the others by
-- taskbell_tasks_under_way, of which there are no more than places of nodes.
SELECT @columns
FROM UNNEST(CAST($1 AS TEXT[]), CAST($2 AS TEXT[]), CAST($3 AS BIGINT[])) AS j (tenant, owner, head)
CROSS JOIN LATERAL (
    SELECT * FROM (
        (SELECT r.* FROM taskbell_tasks r
        WHERE r.tenant = j.tenant AND r.owner = j.owner AND r.log_head > j.head
        ORDER BY r.tenant, r.owner, r.log_head LIMIT CAST($4 AS BIGINT))
        UNION ALL
        (SELECT u.* FROM taskbell_tasks u
        WHERE u.under_way = 1 AND u.tenant = j.tenant AND u.owner = j.owner AND u.head > j.head AND u.log_head <= j.head
        LIMIT CAST($4 AS BIGINT))
    ) c
    ORDER BY c.head LIMIT CAST($4 AS BIGINT)
) t
