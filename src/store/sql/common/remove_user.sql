-- Removes a user.
DELETE FROM taskbell_users WHERE name = $1
