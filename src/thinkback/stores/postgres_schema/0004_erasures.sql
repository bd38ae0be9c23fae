-- Format 4: what was erased is known to whoever has read it before.

-- Counted up by each erasure of commits and each deletion of a session.
CREATE TABLE thinkback.erasures (
    tenant text   COLLATE "C" NOT NULL,
    epoch  bigint NOT NULL,
    PRIMARY KEY (tenant)
);

-- Hits are in the order of when they were said; an import may store what was said long ago.
CREATE INDEX entries_by_moment ON thinkback.entries (tenant, time, arrival);

-- A program that opened the log before it had this format would erase without counting it: what it would append or
-- begin fails, and the server's message says why by the column's name.
ALTER TABLE thinkback.steps RENAME COLUMN written_by_format_3_or_later TO written_by_format_4_or_later;
ALTER TABLE thinkback.sessions RENAME COLUMN written_by_format_3_or_later TO written_by_format_4_or_later;
