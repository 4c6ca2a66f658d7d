-- The head of an owner.
SELECT h.head FROM taskbell_heads h WHERE h.tenant = $1 AND h.owner = $2
