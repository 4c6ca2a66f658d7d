-- Tasks of owners that changed after a head of theirs ($1), at most $2 of each owner. A file has one process, which asks for
-- this in tests only; so it reads all tasks of the owners.
SELECT @columns
FROM (
    SELECT c.*, row_number() OVER (PARTITION BY c.tenant, c.owner ORDER BY c.head) AS place
    FROM json_each($1) j
    CROSS JOIN taskbell_tasks c ON c.tenant = j.value ->> 0 AND c.owner = j.value ->> 1 AND c.head > j.value ->> 2
) t
WHERE t.place <= $2
