-- Those of these hashes that belong to a key, or to a session that counts and was used after $2. By primary keys.
SELECT k.hash FROM taskbell_api_keys k WHERE k.hash @in($1)
UNION ALL
SELECT s.hash FROM taskbell_sessions s
WHERE s.hash @in($1)
  AND (s.used_at > $2 OR s.created_at > $2)
  AND (s.rests_on IS NULL
       OR EXISTS (SELECT 1 FROM taskbell_users u WHERE u.name = s.user_name AND u.updated_at = s.rests_on))
