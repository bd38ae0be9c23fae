-- Format 3: what a list of sessions shows, who has a turn under way, payloads compressed with a dictionary.

-- What was counted of a session, beside what programs say of it. An append adds to the row: an empty place on the page
-- lets that be done without touching the index.
CREATE TABLE thinkback.summaries (
    tenant    text    COLLATE "C" NOT NULL,
    family    bigint  NOT NULL,
    session   integer NOT NULL,
    counted   boolean NOT NULL,
    turns     bigint  NOT NULL,
    tokens    bigint  NOT NULL,
    reasoning bigint  NOT NULL,
    last      bigint  NOT NULL,
    cost      bigint,
    title     text    COLLATE "C" NOT NULL,
    models    text[]  COLLATE "C" NOT NULL,
    program   text    COLLATE "C" NOT NULL,
    project   text    COLLATE "C" NOT NULL,
    directory text    COLLATE "C" NOT NULL,
    sources   text[]  COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, family, session)
) WITH (fillfactor = 50);

-- Whoever appends to a session counts it, so that this takes no longer for a longer log.
INSERT INTO thinkback.summaries
SELECT tenant, family, session, false, 0, 0, 0, 0, NULL, '', '{}', '', '', '', '{}' FROM thinkback.sessions
WHERE name IS NOT NULL;

-- The data that requests of a tenant were built by: once for all of them. `uses` counts the commits that name it.
CREATE TABLE thinkback.bases (
    tenant text     COLLATE "C" NOT NULL,
    uses   bigint   NOT NULL,
    codec  smallint NOT NULL,
    digest bytea    NOT NULL,
    text   bytea    NOT NULL,
    PRIMARY KEY (tenant, digest)
);

-- A row is a lease that is held. Nothing refers to the branch, so that a branch may grow and move beside it. Times are
-- microseconds of the server's clock.
CREATE TABLE thinkback.leases (
    tenant   text    COLLATE "C" NOT NULL,
    family   bigint  NOT NULL,
    session  integer NOT NULL,
    branch   text    COLLATE "C" NOT NULL,
    owner    text    COLLATE "C" NOT NULL,
    pid      integer NOT NULL,
    started  text    COLLATE "C" NOT NULL,
    boot     text    COLLATE "C" NOT NULL,
    host     text    COLLATE "C" NOT NULL,
    taken    bigint  NOT NULL,
    deadline bigint  NOT NULL,
    PRIMARY KEY (tenant, family, session, branch)
) WITH (fillfactor = 50);

-- A program that opened the log before it had this format knows nothing of summaries: what it would append or begin
-- fails, and the server's message says why by the column's name.
ALTER TABLE thinkback.steps ADD COLUMN written_by_format_3_or_later smallint NOT NULL DEFAULT 2;
ALTER TABLE thinkback.steps ALTER COLUMN written_by_format_3_or_later DROP DEFAULT;
ALTER TABLE thinkback.sessions ADD COLUMN written_by_format_3_or_later smallint NOT NULL DEFAULT 2;
ALTER TABLE thinkback.sessions ALTER COLUMN written_by_format_3_or_later DROP DEFAULT;
