-- The task logs, by themselves: a head for each task, its lines, and what each tenant holds.
-- Lines are clustered by task, so that reading a log is one walk. Instants are milliseconds UTC; levels are 0 debug,
-- 1 info, 2 warn, 3 error; bytes count the text and a fixed sum for the row.

CREATE TABLE taskbell_log_head (
    task    TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    tenant  TEXT COLLATE "C" NOT NULL,
    token   BIGINT  NOT NULL,
    newest  BIGINT  NOT NULL,
    bytes   BIGINT  NOT NULL,
    dropped BIGINT  NOT NULL
);

CREATE TABLE taskbell_log_line (
    task    TEXT COLLATE "C" NOT NULL,
    seq     BIGINT  NOT NULL,
    at      BIGINT  NOT NULL,
    level   BIGINT  NOT NULL,
    source  TEXT COLLATE "C" NOT NULL,
    chunk   BIGINT  NOT NULL,
    bytes   BIGINT  NOT NULL,
    message TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (task, seq)
);

CREATE TABLE taskbell_log_tenant (
    tenant TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    bytes  BIGINT  NOT NULL
);
