-- Moves the heads of owners by one. The writer connection makes heads follow commit order.
INSERT INTO taskbell_heads (tenant, owner, head)
SELECT j.value ->> 0, j.value ->> 1, 1 FROM json_each($1) j WHERE true
ON CONFLICT (tenant, owner) DO UPDATE SET head = taskbell_heads.head + 1
RETURNING tenant, owner, head
