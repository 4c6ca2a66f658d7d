-- Removes nodes that were silent for too long; all others than this one where only one can be alive.
DELETE FROM taskbell_nodes WHERE id <> $1 AND ($2 = 1 OR beat_at < $3)
