-- Format 1: what docs/scale.md describes. A log's key is its tenant; `family` is the column to distribute by.
-- No foreign keys, triggers or sequences: a shard knows only its own families, and the store keeps the promises that
-- `thinkback fsck` checks. All hashes are the 32 bytes of a SHA-256; a NUL in text stands as `\0`, a backslash as `\\`.

-- Where a session is, by its name and by its id: the one look-up that is not by family.
CREATE TABLE thinkback.keys (
    tenant  text    COLLATE "C" NOT NULL,
    key     text    COLLATE "C" NOT NULL,
    is_name boolean NOT NULL,
    family  bigint  NOT NULL,
    session integer NOT NULL,
    PRIMARY KEY (tenant, key, is_name)
);

-- How many sessions and segments were ever numbered. Its row is the lock of all that changes a family's shape.
CREATE TABLE thinkback.families (
    tenant   text    COLLATE "C" NOT NULL,
    family   bigint  NOT NULL,
    sessions integer NOT NULL,
    segments integer NOT NULL,
    PRIMARY KEY (tenant, family)
);

-- Without a name: it was deleted, and others stand on what it holds.
CREATE TABLE thinkback.sessions (
    tenant   text    COLLATE "C" NOT NULL,
    family   bigint  NOT NULL,
    session  integer NOT NULL,
    id       text    COLLATE "C" NOT NULL,
    name     text    COLLATE "C",
    root     text    COLLATE "C" NOT NULL,
    parent   text    COLLATE "C" NOT NULL,
    purpose  text    COLLATE "C" NOT NULL,
    branch   text    COLLATE "C" NOT NULL,
    created  bigint  NOT NULL,
    made     timestamptz NOT NULL DEFAULT clock_timestamp(),
    settings text    COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, family, session)
);

CREATE TABLE thinkback.segments (
    tenant          text    COLLATE "C" NOT NULL,
    family          bigint  NOT NULL,
    segment         integer NOT NULL,
    session         integer NOT NULL,
    base            integer NOT NULL,
    parent_segment  integer,
    parent_position integer,
    PRIMARY KEY (tenant, family, segment)
);

-- A ref. Its head is kept beside its place, so that moving it is one compare-and-set of one row, and an empty place on
-- the page lets that be done without touching the index.
CREATE TABLE thinkback.branches (
    tenant   text    COLLATE "C" NOT NULL,
    family   bigint  NOT NULL,
    session  integer NOT NULL,
    name     text    COLLATE "C" NOT NULL,
    segment  integer NOT NULL,
    position integer NOT NULL,
    seq      integer NOT NULL,
    time     bigint  NOT NULL,
    hash     bytea   NOT NULL,
    PRIMARY KEY (tenant, family, session, name)
) WITH (fillfactor = 50);

CREATE TABLE thinkback.commits (
    tenant   text    COLLATE "C" NOT NULL,
    family   bigint  NOT NULL,
    segment  integer NOT NULL,
    position integer NOT NULL,
    time     bigint  NOT NULL,
    block    integer NOT NULL,
    codec    smallint NOT NULL,
    kind     text    COLLATE "C" NOT NULL,
    hash     bytea   NOT NULL,
    parents  bytea   NOT NULL,
    digest   bytea   NOT NULL,
    edit     bytea   NOT NULL,
    response text    COLLATE "C" NOT NULL,
    payload  bytea   NOT NULL,
    PRIMARY KEY (tenant, family, segment, position)
);
-- Payloads are compressed before they come.
ALTER TABLE thinkback.commits ALTER COLUMN payload SET STORAGE EXTERNAL;

-- Six bytes find a commit; the whole hash is compared in the row. Within a family, so that an append dirties the pages
-- of its own family and not one page of the whole index for each commit.
CREATE INDEX commits_by_hash ON thinkback.commits (tenant, family, substring(hash FROM 1 FOR 6));

-- Few: what a removal must leave because it was merged.
CREATE INDEX commits_that_merge ON thinkback.commits (tenant, family) WHERE length(parents) > 32;

CREATE TABLE thinkback.steps (
    tenant   text    COLLATE "C" NOT NULL,
    family   bigint  NOT NULL,
    session  integer NOT NULL,
    segment  integer NOT NULL,
    position integer NOT NULL,
    commits  integer NOT NULL,
    stored   timestamptz NOT NULL DEFAULT clock_timestamp(),
    id       text    COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, family, session, id)
);

-- What the search index lacks: a row comes with each step, in its transaction, and goes when the index has it. So
-- nothing is left out, in whatever order transactions end.
CREATE TABLE thinkback.unsearched (
    tenant   text    COLLATE "C" NOT NULL,
    stored   timestamptz NOT NULL,
    family   bigint  NOT NULL,
    segment  integer NOT NULL,
    position integer NOT NULL,
    commits  integer NOT NULL,
    PRIMARY KEY (tenant, stored, family, segment, position)
);

-- How far the index has numbered its entries, and in which form they are. Its row is the lock of the index.
CREATE TABLE thinkback.searched (
    tenant  text    COLLATE "C" NOT NULL PRIMARY KEY,
    form    integer NOT NULL,
    arrival bigint  NOT NULL
);

-- `words` holds the words of a commit's text, and words that no text has for its tenant, family, kind, models and tools.
CREATE TABLE thinkback.entries (
    tenant   text    COLLATE "C" NOT NULL,
    family   bigint  NOT NULL,
    segment  integer NOT NULL,
    position integer NOT NULL,
    arrival  bigint  NOT NULL,
    time     bigint  NOT NULL,
    tokens   integer NOT NULL,
    priority text    COLLATE "C" NOT NULL,
    names    text    COLLATE "C" NOT NULL,
    words    tsvector NOT NULL,
    PRIMARY KEY (tenant, family, segment, position)
);

CREATE INDEX entries_by_arrival ON thinkback.entries (tenant, arrival);

CREATE INDEX entries_by_word ON thinkback.entries USING gin (words);

-- Entries come nearly in the order of their times: so much as when each stretch of the table is of.
CREATE INDEX entries_by_time ON thinkback.entries USING brin (time) WITH (pages_per_range = 32, autosummarize = on);
