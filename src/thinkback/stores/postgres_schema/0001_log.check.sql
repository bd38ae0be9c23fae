-- What 0001 promises; each row of this query is a broken promise.
WITH promised (type, name) AS (
    VALUES ('table', 'keys'), ('table', 'families'), ('table', 'sessions'), ('table', 'segments'),
           ('table', 'branches'), ('table', 'commits'), ('table', 'steps'), ('index', 'commits_by_hash'),
           ('index', 'commits_that_merge'), ('table', 'unsearched'), ('table', 'searched'), ('table', 'entries'),
           ('index', 'entries_by_arrival'), ('index', 'entries_by_word'), ('index', 'entries_by_time')
)
SELECT type || ' ' || name || ' is missing' FROM promised WHERE to_regclass('thinkback.' || name) IS NULL;
