-- Writes a pack. Waits for the claims that have it locked.
INSERT INTO taskbell_packs (name, version, serial, paused, changed_at, changed_by) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (name) DO UPDATE SET version = excluded.version, serial = excluded.serial, paused = excluded.paused,
    changed_at = excluded.changed_at, changed_by = excluded.changed_by
