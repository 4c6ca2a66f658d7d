-- Moves the heads of owners by one. The owners come in one order; the lock of a head's row makes heads of one owner follow
-- commit order.
INSERT INTO taskbell_heads (tenant, owner, head)
SELECT j.tenant, j.owner, 1 FROM UNNEST(CAST($1 AS TEXT[]), CAST($2 AS TEXT[])) AS j (tenant, owner)
ON CONFLICT (tenant, owner) DO UPDATE SET head = taskbell_heads.head + 1
RETURNING tenant, owner, head
