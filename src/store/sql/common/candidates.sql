-- Tasks of a tenant that may be claimed, in claim order, locked; those that another node has locked are passed over.
-- Index: taskbell_tasks_claim, in its own order, so the cost does not grow with the number that wait. The bound on rank
-- passes over tasks that are due later: the highest priority is worth 100 minutes (RANK_STEP_MS), so nothing due by $2
-- ranks above $2 + 6,000,000.
SELECT @columns FROM taskbell_tasks t
WHERE t.claimable = 1 AND t.tenant = $1 AND t.rank <= CAST($2 AS BIGINT) + 6000000 AND t.due_at <= $2
    AND t.action @in($3) AND (t.pack IS NULL OR t.pack @in($5))
ORDER BY t.rank, t.id LIMIT $4 @skip_locked
