-- All API keys, the oldest first.
SELECT k.hash, k.tenant, k.user_name, k.role, k.scopes, k.created_at, k.expires_at
FROM taskbell_api_keys k ORDER BY k.created_at, k.hash
