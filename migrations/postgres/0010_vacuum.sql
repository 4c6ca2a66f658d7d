-- A claim passes over the entries of what was finished since the server last took dead rows away, so it grows slower until then.
-- By default that is a fifth of the table, which with millions of ended tasks is days; here it is a few minutes of work.
ALTER TABLE taskbell_tasks SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 10000);
