-- People who sign in by password, and what their sessions rest on.

-- One name in all tenants: the sign-in asks for a name and a password and nothing else.
CREATE TABLE taskbell_users (
    name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    tenant TEXT COLLATE "C" NOT NULL,
    role TEXT COLLATE "C" NOT NULL,
    password TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

-- When a session was last used; an older version leaves it at 0, and then its start counts.
ALTER TABLE taskbell_sessions ADD COLUMN used_at BIGINT NOT NULL DEFAULT 0;
-- The updated_at of the user's row at the sign-in. Null in the demo, whose users have no row.
ALTER TABLE taskbell_sessions ADD COLUMN rests_on BIGINT;
