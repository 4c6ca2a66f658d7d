-- Serial packs of a claim, locked against the claims of other nodes, so that two of them cannot each start a chunk; and
-- against a switch, so that none starts after it.
SELECT p.name, p.paused FROM taskbell_packs p WHERE p.serial = 1 AND p.name @in($1) ORDER BY p.name @lock
