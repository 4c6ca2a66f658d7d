-- The heads of owners, and those of the last commits that deleted tasks. By primary key: CROSS JOIN keeps the planner from
-- turning the loops around.
SELECT h.tenant, h.owner, h.head, h.deleted_head
FROM json_each($1) j CROSS JOIN taskbell_heads h ON h.tenant = j.value ->> 0 AND h.owner = j.value ->> 1
