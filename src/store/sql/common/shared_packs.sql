-- Packs of a claim that are not serial, locked against a switch and not against other claims. One that turns serial while
-- the lock is waited for is in neither answer, and so not claimed this time.
SELECT p.name, p.paused FROM taskbell_packs p WHERE p.serial = 0 AND p.name @in($1) ORDER BY p.name @share
