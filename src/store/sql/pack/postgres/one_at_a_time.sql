-- Lets one node after the other make tables: two that make the same one at once would meet in the catalogue.
SELECT pg_advisory_xact_lock(20250, 100002)
