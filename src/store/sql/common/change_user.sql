-- Changes what is given of a user. updated_at grows even where the clock was set back: sessions rest on its value.
UPDATE taskbell_users
SET password = coalesce(CAST($2 AS TEXT), password),
    role = coalesce(CAST($3 AS TEXT), role),
    updated_at = CASE WHEN updated_at < $4 THEN $4 ELSE updated_at + 1 END
WHERE name = $1
