-- Takes an API key back.
DELETE FROM taskbell_api_keys WHERE hash = $1
