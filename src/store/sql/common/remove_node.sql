-- A node says goodbye.
DELETE FROM taskbell_nodes WHERE id = $1
