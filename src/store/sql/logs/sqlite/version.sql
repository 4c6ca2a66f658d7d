-- Which migration the file has seen last; 0 = none. Kept by SQLite in the header of the file.
PRAGMA user_version
