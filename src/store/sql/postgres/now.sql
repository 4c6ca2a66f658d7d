-- The database's clock, in ms UTC, at this very moment and not at the beginning of the transaction.
SELECT CAST(floor(extract(epoch FROM clock_timestamp()) * 1000) AS BIGINT)
