-- The user of a name.
SELECT u.name, u.tenant, u.role, u.password, u.created_at, u.updated_at FROM taskbell_users u WHERE u.name = $1
