-- Names this incarnation of the database.
SELECT m.value FROM taskbell_meta m WHERE m.name = 'epoch'
