-- What 0001 promises; each row of this query is a broken promise.
WITH promised (name) AS (
    VALUES ('keys'), ('spending'), ('replays'), ('replays_by_end'), ('carriers'), ('carriers_by_end')
)
SELECT name || ' is missing' FROM promised WHERE to_regclass('thinkback_gateway.' || name) IS NULL;
