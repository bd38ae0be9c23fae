-- What 0002 promises; each row of this query is a broken promise.
WITH promised (type, name) AS (
    VALUES ('index', 'sessions_by_family'), ('index', 'segments_by_session'), ('index', 'segments_by_parent'),
           ('index', 'branches_by_segment'), ('index', 'merges_by_segment')
)
SELECT type || ' ' || name || ' is missing' FROM promised
WHERE NOT EXISTS (SELECT 1 FROM sqlite_schema AS s WHERE s.type = promised.type AND s.name = promised.name);

WITH promised (within, name) AS (
    VALUES ('sessions', 'branch'), ('sessions', 'parent'), ('sessions', 'purpose'), ('migrations', 'unswept')
)
SELECT 'column ' || within || '.' || name || ' is missing' FROM promised
WHERE NOT EXISTS (SELECT 1 FROM pragma_table_info(promised.within) AS c WHERE c.name = promised.name);
