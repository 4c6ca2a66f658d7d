-- Moves the heads of owners by one. The owners come in one order; the lock of a head's row makes heads of one owner follow
-- commit order. Arrays, one a column.
INSERT INTO taskbell_heads (tenant, owner, head, deleted_head)
SELECT v.column1, v.column2, 1, 0 FROM @rows
ON CONFLICT (tenant, owner) DO UPDATE SET head = taskbell_heads.head + 1
RETURNING tenant, owner, head
