-- The change log between nodes. A file has one serving process, which hears of everything itself: so there is no index for
-- it here, and only the table is the same as on the other databases.

-- The head of the last commit that deleted tasks of the owner.
ALTER TABLE taskbell_heads ADD COLUMN deleted_head INTEGER NOT NULL DEFAULT 0;
