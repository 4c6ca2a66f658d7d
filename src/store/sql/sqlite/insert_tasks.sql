-- New tasks; one whose id is taken is left as it is, and the count of rows tells. OR FAIL: whoever fails rolls the
-- transaction back anyway, so SQLite need not keep a journal of the statement. Values are bound one by one: a JSON array that
-- SQL opens costs three times as much (docs/performance.md).
INSERT OR FAIL INTO taskbell_tasks (@names) VALUES @rows ON CONFLICT (id) DO NOTHING
