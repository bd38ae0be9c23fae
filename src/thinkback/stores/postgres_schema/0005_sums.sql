-- Format 5: the sums of a session have what was cached beside the input, and what was reasoned beside the output.

-- Whoever lists a session, or appends to it, counts it.
UPDATE thinkback.summaries SET counted = false;

-- A program that opened the log before it had this format would add by its own definition: what it would append or
-- begin fails, and the server's message says why by the column's name.
ALTER TABLE thinkback.steps RENAME COLUMN written_by_format_4_or_later TO written_by_format_5_or_later;
ALTER TABLE thinkback.sessions RENAME COLUMN written_by_format_4_or_later TO written_by_format_5_or_later;
