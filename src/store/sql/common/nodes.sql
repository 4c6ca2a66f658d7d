-- All nodes that were heard of within the last hour; a handful.
SELECT n.id, n.role, n.version, n.parallelism, n.lease_ms, n.tenants, n.actions, n.packs, n.started_at, n.beat_at, n.standing
FROM taskbell_nodes n ORDER BY n.id
