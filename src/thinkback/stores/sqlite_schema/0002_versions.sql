-- Format 2: branches that part, sessions that descend from others, sessions that are gone and still stood on.
-- docs/format.md explains every column.

-- A new table, because the name of a deleted session must be free for another one: then it is NULL.
CREATE TABLE sessions_2 (
    session  INTEGER PRIMARY KEY,
    id       TEXT    NOT NULL UNIQUE,
    name     TEXT    UNIQUE,
    family   INTEGER NOT NULL REFERENCES sessions (session),
    created  INTEGER NOT NULL,
    settings TEXT    NOT NULL,
    branch   TEXT    NOT NULL,
    parent   INTEGER REFERENCES sessions (session),
    purpose  TEXT    NOT NULL
) STRICT;

INSERT INTO sessions_2 SELECT session, id, name, family, created, settings, 'main', NULL, '' FROM sessions;

DROP TABLE sessions;

ALTER TABLE sessions_2 RENAME TO sessions;

CREATE INDEX sessions_by_family ON sessions (family);

-- What stands on what, for those who remove something. None of these changes when a branch grows.
CREATE INDEX segments_by_session ON segments (session);

CREATE INDEX segments_by_parent ON segments (parent_segment) WHERE parent_segment IS NOT NULL;

CREATE INDEX branches_by_segment ON branches (segment);

CREATE INDEX merges_by_segment ON commits (segment) WHERE length(parents) > 32;

-- Commits up to here were written while deleted bytes were not always overwritten. 0: none, or the file was rewritten.
ALTER TABLE migrations ADD COLUMN unswept INTEGER NOT NULL DEFAULT 0;

UPDATE migrations SET unswept = (SELECT coalesce(max(arrival), 0) FROM commits) WHERE version = 1;
