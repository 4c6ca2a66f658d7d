-- The beat of a node. Only that node writes its row.
INSERT INTO taskbell_nodes (id, role, version, parallelism, lease_ms, tenants, actions, packs, started_at, beat_at, standing)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
ON CONFLICT (id) DO UPDATE SET actions = excluded.actions, packs = excluded.packs, beat_at = excluded.beat_at,
    standing = excluded.standing
