-- Keeps an API key by its hash.
INSERT INTO taskbell_api_keys (hash, tenant, user_name, role, scopes, created_at, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7)
