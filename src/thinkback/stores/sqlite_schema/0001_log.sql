-- Format 1: sessions, their segments and branches, commits and the steps that brought them.
-- docs/format.md explains every column; all hashes are the 32 bytes of a SHA-256.

CREATE TABLE sessions (
    session  INTEGER PRIMARY KEY,
    id       TEXT    NOT NULL UNIQUE,
    name     TEXT    NOT NULL UNIQUE,
    family   INTEGER NOT NULL REFERENCES sessions (session),
    created  INTEGER NOT NULL,
    settings TEXT    NOT NULL
) STRICT;

CREATE TABLE segments (
    segment         INTEGER PRIMARY KEY,
    session         INTEGER NOT NULL REFERENCES sessions (session),
    base            INTEGER NOT NULL,
    parent_segment  INTEGER REFERENCES segments (segment),
    parent_position INTEGER
) STRICT;

CREATE TABLE branches (
    session  INTEGER NOT NULL REFERENCES sessions (session),
    name     TEXT    NOT NULL,
    segment  INTEGER NOT NULL REFERENCES segments (segment),
    position INTEGER NOT NULL,
    PRIMARY KEY (session, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE commits (
    arrival  INTEGER PRIMARY KEY,
    segment  INTEGER NOT NULL REFERENCES segments (segment),
    position INTEGER NOT NULL,
    hash     BLOB    NOT NULL,
    parents  BLOB    NOT NULL,
    kind     TEXT    NOT NULL,
    digest   BLOB    NOT NULL,
    time     INTEGER NOT NULL,
    response TEXT    NOT NULL,
    block    INTEGER NOT NULL,
    edit     BLOB    NOT NULL,
    codec    INTEGER NOT NULL,
    payload  BLOB    NOT NULL,
    UNIQUE (segment, position)
) STRICT;

-- A slim copy of the hashes, read from end to end to find a commit (55 ms for a million). An index ordered by hash
-- would find it sooner, but then every commit of an append would change another page of it, the more so the larger
-- the log. Hashes are not unique: two sessions may begin with the same commits.
CREATE INDEX commits_by_arrival ON commits (arrival, hash);

CREATE TABLE steps (
    session  INTEGER NOT NULL REFERENCES sessions (session),
    id       TEXT    NOT NULL,
    segment  INTEGER NOT NULL REFERENCES segments (segment),
    position INTEGER NOT NULL,
    commits  INTEGER NOT NULL,
    PRIMARY KEY (session, id)
) STRICT, WITHOUT ROWID;
