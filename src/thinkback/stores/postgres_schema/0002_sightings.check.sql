-- What 0002 promises; each row of this query is a broken promise.
WITH promised (type, name) AS (VALUES ('table', 'sightings'), ('index', 'sightings_by_place'))
SELECT type || ' ' || name || ' is missing' FROM promised WHERE to_regclass('thinkback.' || name) IS NULL;
