-- Moves the heads of owners by one, and notes it where tasks are deleted ($2 = 1). The writer connection makes heads follow
-- commit order.
INSERT INTO taskbell_heads (tenant, owner, head, deleted_head)
SELECT j.value ->> 0, j.value ->> 1, 1, $2 FROM json_each($1) j WHERE true
ON CONFLICT (tenant, owner) DO UPDATE SET head = taskbell_heads.head + 1,
    deleted_head = CASE WHEN $2 = 1 THEN taskbell_heads.head + 1 ELSE taskbell_heads.deleted_head END
RETURNING tenant, owner, head
