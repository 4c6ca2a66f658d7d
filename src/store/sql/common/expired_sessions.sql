-- Forgets sessions that are over; runs when a new one is made.
DELETE FROM taskbell_sessions WHERE expires_at < $1
