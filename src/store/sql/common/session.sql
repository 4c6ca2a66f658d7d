-- The session of a hash.
SELECT s.tenant, s.user_name, s.role, s.scopes, s.created_at, s.expires_at FROM taskbell_sessions s WHERE s.hash = $1
