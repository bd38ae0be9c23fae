-- What 0001 promises; each row of this query is a broken promise.
WITH promised (name) AS (
    VALUES ('keys'), ('spending'), ('replays'), ('replays_by_end'), ('carriers'), ('carriers_by_end')
)
SELECT name || ' is missing' FROM promised
WHERE NOT EXISTS (SELECT 1 FROM sqlite_schema AS s WHERE s.name = promised.name);
