-- Keeps a session by the hash of its secret.
INSERT INTO taskbell_sessions (hash, tenant, user_name, role, scopes, created_at, used_at, expires_at, rests_on)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
