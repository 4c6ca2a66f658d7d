-- All packs that were ever loaded.
SELECT p.name, p.version, p.serial, p.paused, p.changed_at, p.changed_by FROM taskbell_packs p ORDER BY p.name
