-- The API keys of these hashes. By primary key.
SELECT k.hash, k.tenant, k.user_name, k.role, k.scopes, k.created_at, k.expires_at
FROM taskbell_api_keys k WHERE k.hash @in($1)
