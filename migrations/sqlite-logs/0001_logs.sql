-- The task logs, in a file of their own: a head for each task, its lines, and what each tenant holds.
-- Lines are clustered by task, so that reading a log is one walk. Instants are milliseconds UTC; levels are 0 debug,
-- 1 info, 2 warn, 3 error; bytes count the text and a fixed sum for the row.

CREATE TABLE taskbell_log_head (
    task    TEXT    NOT NULL PRIMARY KEY,
    tenant  TEXT    NOT NULL,
    token   INTEGER NOT NULL,
    newest  INTEGER NOT NULL,
    bytes   INTEGER NOT NULL,
    dropped INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE taskbell_log_line (
    task    TEXT    NOT NULL,
    seq     INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    level   INTEGER NOT NULL,
    source  TEXT    NOT NULL,
    chunk   INTEGER NOT NULL,
    bytes   INTEGER NOT NULL,
    message TEXT    NOT NULL,
    PRIMARY KEY (task, seq)
) WITHOUT ROWID;

CREATE TABLE taskbell_log_tenant (
    tenant TEXT    NOT NULL PRIMARY KEY,
    bytes  INTEGER NOT NULL
) WITHOUT ROWID;
