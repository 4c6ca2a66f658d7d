-- When the next task that may be claimed is due. Index: taskbell_tasks_due.
SELECT MIN(t.due_at) FROM taskbell_tasks t WHERE t.claimable = 1
