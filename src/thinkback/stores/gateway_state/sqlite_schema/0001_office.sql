-- Format 1 of a gateway's own state. Times are microseconds UTC, digests SHA-256; what is sealed only the gateway opens.

CREATE TABLE keys (
    made    INTEGER PRIMARY KEY,
    id      TEXT    NOT NULL UNIQUE,
    digest  BLOB    NOT NULL UNIQUE CHECK (length(digest) = 32),
    ending  TEXT    NOT NULL,
    tenant  TEXT    NOT NULL,
    name    TEXT    NOT NULL,
    terms   BLOB    NOT NULL,
    created INTEGER NOT NULL,
    expires INTEGER,
    revoked INTEGER
) STRICT;

CREATE TABLE spending (
    key       TEXT    NOT NULL,
    period    TEXT    NOT NULL,
    requests  INTEGER NOT NULL,
    input     INTEGER NOT NULL,
    output    INTEGER NOT NULL,
    reasoning INTEGER NOT NULL,
    PRIMARY KEY (key, period)
) STRICT, WITHOUT ROWID;

-- Without an answer it is a claim of `owner`. Either ends at `until`.
CREATE TABLE replays (
    tenant TEXT    NOT NULL,
    slot   BLOB    NOT NULL CHECK (length(slot) = 16),
    body   BLOB    NOT NULL,
    owner  TEXT    NOT NULL,
    until  INTEGER NOT NULL,
    answer BLOB,
    PRIMARY KEY (tenant, slot)
) STRICT;

CREATE INDEX replays_by_end ON replays (until);

CREATE TABLE carriers (
    tenant   TEXT    NOT NULL,
    scope    BLOB    NOT NULL CHECK (length(scope) = 16),
    response BLOB    NOT NULL CHECK (length(response) = 16),
    until    INTEGER NOT NULL,
    sealed   BLOB    NOT NULL,
    PRIMARY KEY (tenant, scope, response)
) STRICT;

CREATE INDEX carriers_by_end ON carriers (until);
