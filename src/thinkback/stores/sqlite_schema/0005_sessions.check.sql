-- What 0005 promises; each row of this query is a broken promise.
WITH promised (type, name) AS (VALUES ('table', 'leases'))
SELECT type || ' ' || name || ' is missing' FROM promised
WHERE NOT EXISTS (SELECT 1 FROM sqlite_schema AS s WHERE s.type = promised.type AND s.name = promised.name);
