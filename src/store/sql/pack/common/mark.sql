-- The mark of a task, by primary key: what its last chunk that changed something answered.
SELECT chunk, outcome FROM taskbell_chunks WHERE task = $1
