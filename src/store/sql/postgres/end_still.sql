-- Ends the transactions of nodes that stand still, and answers how many of each node: those that have asked nothing for $1 ms,
-- by any session, while a transaction of theirs waits for them for $2 ms. All of a node at once: the others wait for the locks
-- of the first, and would get them and hold them in their turn. Sessions carry the node's name after `taskbell `. Only what
-- this user may end. A few rows, and no table.
WITH sessions AS (
    SELECT a.pid, a.application_name AS name, a.xact_start, GREATEST(a.backend_start, a.query_start) AS asked_at,
        CASE WHEN a.xact_start IS NOT NULL AND a.wait_event_type = 'Client' THEN a.state_change END AS waits_since
    FROM pg_stat_activity a
    WHERE a.datname = current_database() AND a.application_name LIKE 'taskbell %' AND pg_has_role(a.usesysid, 'USAGE')
), still AS (
    SELECT s.name FROM sessions s GROUP BY s.name
    HAVING MAX(s.asked_at) <= statement_timestamp() - CAST($1 AS BIGINT) * INTERVAL '1 millisecond'
        AND MIN(s.waits_since) <= statement_timestamp() - CAST($2 AS BIGINT) * INTERVAL '1 millisecond'
)
SELECT substr(s.name, 10), COUNT(*) FILTER (WHERE pg_terminate_backend(s.pid))
FROM sessions s JOIN still ON still.name = s.name WHERE s.xact_start IS NOT NULL GROUP BY s.name
