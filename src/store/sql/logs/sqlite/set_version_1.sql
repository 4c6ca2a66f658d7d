-- Marks the first migration as done, in its own transaction.
PRAGMA user_version = 1
