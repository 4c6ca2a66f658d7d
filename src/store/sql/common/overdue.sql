-- What time has undone: leases ($2 = 1: every lease of a node), cancels asked at or before $3, deadlines.
-- Index: taskbell_tasks_under_way for the first two (only rows with a lease), taskbell_tasks_deadline for the third.
SELECT t.id FROM taskbell_tasks t WHERE t.under_way = 1
    AND (t.lease_until <= $1 OR ($2 = 1 AND t.chunk_until IS NULL))
UNION
SELECT t.id FROM taskbell_tasks t WHERE t.under_way = 1 AND t.state = 'cancelling' AND t.stop_at <= $3
UNION
SELECT t.id FROM taskbell_tasks t WHERE t.active = 1 AND t.deadline IS NOT NULL AND t.deadline <= $1
LIMIT $4
