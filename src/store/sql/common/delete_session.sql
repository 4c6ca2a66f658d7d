-- Ends a session.
DELETE FROM taskbell_sessions WHERE hash = $1
