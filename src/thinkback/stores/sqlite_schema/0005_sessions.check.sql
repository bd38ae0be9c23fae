-- What 0005 promises; each row of this query is a broken promise.
WITH promised (type, name) AS (
    VALUES ('table', 'summaries'), ('table', 'leases'), ('table', 'bases'), ('trigger', 'older_programs')
)
SELECT type || ' ' || name || ' is missing' FROM promised
WHERE NOT EXISTS (SELECT 1 FROM sqlite_schema AS s WHERE s.type = promised.type AND s.name = promised.name);

SELECT 'session ' || id || ' has no summary' FROM sessions AS s
WHERE name IS NOT NULL AND NOT EXISTS (SELECT 1 FROM summaries AS u WHERE u.session = s.session);
