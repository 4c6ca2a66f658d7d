-- The session of a hash, as long as the user it rests on is as it was.
SELECT s.hash, s.tenant, s.user_name, s.role, s.scopes, s.created_at, s.used_at, s.expires_at, s.rests_on
FROM taskbell_sessions s
WHERE s.hash = $1
  AND (s.rests_on IS NULL
       OR EXISTS (SELECT 1 FROM taskbell_users u WHERE u.name = s.user_name AND u.updated_at = s.rests_on))
