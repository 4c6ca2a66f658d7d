-- The heads of owners, and those of the last commits that deleted tasks. By primary key.
SELECT h.tenant, h.owner, h.head, h.deleted_head
FROM UNNEST(CAST($1 AS TEXT[]), CAST($2 AS TEXT[])) AS j (tenant, owner)
JOIN taskbell_heads h ON h.tenant = j.tenant AND h.owner = j.owner
