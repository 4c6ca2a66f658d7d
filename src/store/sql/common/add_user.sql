-- Keeps a new user; the primary key decides a race for the name.
INSERT INTO taskbell_users (name, tenant, role, password, created_at, updated_at)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (name) DO NOTHING
