-- Format 5: who has a turn under way on which branch. docs/format.md explains every column.

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
