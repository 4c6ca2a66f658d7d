-- The database's clock, in ms UTC.
SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER)
