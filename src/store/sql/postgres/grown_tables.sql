-- Our tables that hold more than twice as many rows as the server last counted, and $1 rows more: its plans are still those of
-- a small table. Only what this user may have it count. A few rows of the catalogue, and no table.
SELECT CAST(c.relname AS TEXT) FROM pg_class c
WHERE c.relkind = 'r' AND c.relname LIKE 'taskbell\_%' AND pg_table_is_visible(c.oid) AND pg_has_role(c.relowner, 'USAGE')
    AND pg_stat_get_live_tuples(c.oid) > 2 * GREATEST(c.reltuples, 0) + CAST($1 AS BIGINT)
ORDER BY c.relname
