-- What 0003 promises; each row of this query is a broken promise.
WITH promised (type, name) AS (VALUES ('table', 'summaries'), ('table', 'leases'), ('table', 'bases'))
SELECT type || ' ' || name || ' is missing' FROM promised WHERE to_regclass('thinkback.' || name) IS NULL;
