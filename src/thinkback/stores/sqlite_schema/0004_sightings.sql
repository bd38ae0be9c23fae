-- Format 4: by what of them is visible responses are found again. It is made from the log; without it they are not found.
-- docs/format.md explains every column.

-- By scope first, so that what one client adds lies together and not on a page of the whole table for each digest.
CREATE TABLE sightings (
    scope    BLOB    NOT NULL,
    digest   BLOB    NOT NULL,
    head     INTEGER NOT NULL,
    response INTEGER NOT NULL,
    PRIMARY KEY (scope, digest, head, response)
) STRICT, WITHOUT ROWID;

-- For those who remove commits; it grows at its end.
CREATE INDEX sightings_by_head ON sightings (head);
