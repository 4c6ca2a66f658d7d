-- Moves the heads of owners by one, and notes it where tasks are deleted ($3 = 1). The owners come in one order; the lock of
-- a head's row makes heads of one owner follow commit order.
INSERT INTO taskbell_heads (tenant, owner, head, deleted_head)
SELECT j.tenant, j.owner, 1, CAST($3 AS BIGINT)
FROM UNNEST(CAST($1 AS TEXT[]), CAST($2 AS TEXT[])) AS j (tenant, owner)
ON CONFLICT (tenant, owner) DO UPDATE SET head = taskbell_heads.head + 1,
    deleted_head = CASE WHEN CAST($3 AS BIGINT) = 1 THEN taskbell_heads.head + 1 ELSE taskbell_heads.deleted_head END
RETURNING tenant, owner, head
