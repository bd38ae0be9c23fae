-- Format 5: what a list of sessions shows, who has a turn under way, payloads compressed with a dictionary.
-- docs/format.md explains every column.

CREATE TABLE summaries (
    session   INTEGER PRIMARY KEY REFERENCES sessions (session),
    counted   INTEGER NOT NULL,
    title     TEXT    NOT NULL,
    models    TEXT    NOT NULL,
    turns     INTEGER NOT NULL,
    tokens    INTEGER NOT NULL,
    reasoning INTEGER NOT NULL,
    last      INTEGER NOT NULL,
    program   TEXT    NOT NULL,
    project   TEXT    NOT NULL,
    directory TEXT    NOT NULL,
    sources   TEXT    NOT NULL,
    cost      INTEGER
) STRICT;

-- Whoever appends to a session counts it, so that this takes no longer for a longer log.
INSERT INTO summaries SELECT session, 0, '', '[]', 0, 0, 0, 0, '', '', '', '[]', NULL FROM sessions WHERE name IS NOT NULL;

-- The data that requests were built by: once for all of them. `uses` counts the commits that name it.
CREATE TABLE bases (
    digest BLOB    PRIMARY KEY,
    codec  INTEGER NOT NULL,
    text   BLOB    NOT NULL,
    uses   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- A row is a lease that is held. Nothing refers to the branch, so that a branch may grow and move beside it.
CREATE TABLE leases (
    session  INTEGER NOT NULL REFERENCES sessions (session),
    branch   TEXT    NOT NULL,
    owner    TEXT    NOT NULL,
    pid      INTEGER NOT NULL,
    started  TEXT    NOT NULL,
    boot     TEXT    NOT NULL,
    host     TEXT    NOT NULL,
    taken    INTEGER NOT NULL,
    deadline INTEGER NOT NULL,
    PRIMARY KEY (session, branch)
) STRICT, WITHOUT ROWID;

-- A program that opened the log before it had this format knows nothing of summaries: its appends must fail.
ALTER TABLE steps ADD COLUMN format INTEGER;

CREATE TRIGGER older_programs BEFORE INSERT ON steps WHEN NEW.format IS NULL BEGIN
    SELECT RAISE(ABORT, 'a newer thinkback has brought this log to format 5: upgrade this one, or open the log again');
END;
