-- What 0003 promises; each row of this query is a broken promise.
WITH promised (name) AS (
    VALUES ('search_state'), ('search_labels'), ('search_entries'), ('search_times'), ('search_words')
)
SELECT 'table ' || name || ' is missing' FROM promised
WHERE NOT EXISTS (SELECT 1 FROM sqlite_schema AS s WHERE s.type = 'table' AND s.name = promised.name);

SELECT 'search_state has ' || count(*) || ' rows' FROM search_state HAVING count(*) <> 1;
