-- All users, by name as bytes.
SELECT u.name, u.tenant, u.role, u.password, u.created_at, u.updated_at FROM taskbell_users u ORDER BY u.name
