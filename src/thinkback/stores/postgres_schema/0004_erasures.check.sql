-- What 0004 promises; each row of this query is a broken promise.
SELECT 'table erasures is missing' WHERE to_regclass('thinkback.erasures') IS NULL
UNION ALL
SELECT 'index entries_by_moment is missing' WHERE to_regclass('thinkback.entries_by_moment') IS NULL;
