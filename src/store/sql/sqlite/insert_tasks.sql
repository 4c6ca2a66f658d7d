-- New tasks. Values are bound one by one: a JSON array that SQL opens costs three times as much (docs/performance.md).
INSERT INTO taskbell_tasks (@names) VALUES @rows
