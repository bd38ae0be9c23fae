-- What 0005 promises; each row of this query is a broken promise.
SELECT 'column written_by_format_5_or_later is missing' WHERE NOT EXISTS (
    SELECT 1 FROM information_schema.columns
    WHERE table_schema = 'thinkback' AND table_name = 'steps' AND column_name = 'written_by_format_5_or_later'
);
