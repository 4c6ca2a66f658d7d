-- Notes that a session was used. Only forward: nodes may differ by a moment.
UPDATE taskbell_sessions SET used_at = $2 WHERE hash = $1 AND used_at < $2
