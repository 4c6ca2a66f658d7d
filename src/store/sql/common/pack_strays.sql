-- Tasks that are not as the switch of their pack is: those to stop, with a chunk under way first, then those to let go on.
-- A parent that waits for its children starts nothing and is left alone. Packs come first, for there are few; SQLite keeps the
-- order of a CROSS JOIN. Index: taskbell_tasks_pack, taskbell_tasks_held.
SELECT s.id FROM (
    SELECT t.id, CASE WHEN t.lease_until IS NULL THEN 1 ELSE 0 END AS turn
    FROM taskbell_packs p CROSS JOIN taskbell_tasks t @by_pack
    WHERE t.pack = p.name AND p.paused = 1 AND t.active = 1 AND t.pack IS NOT NULL
        AND t.state IN ('queued', 'blocked', 'running') AND (t.wait IS NULL OR t.wait <> 'children')
    UNION ALL
    SELECT t.id, 1 FROM taskbell_packs p CROSS JOIN taskbell_tasks t @by_held
    WHERE t.pack = p.name AND p.paused = 0 AND t.wait = 'pack-disabled' AND t.state IN ('pausing', 'paused')
) s ORDER BY s.turn, s.id LIMIT $1
