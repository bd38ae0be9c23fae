-- Format 2: by what of them is visible responses are found again. Made from the log; without it they are not found.

-- Newest first under each digest; what one client adds lies together. `scope` is the column to distribute by.
CREATE TABLE thinkback.sightings (
    tenant   text    COLLATE "C" NOT NULL,
    stored   timestamptz NOT NULL DEFAULT clock_timestamp(),
    time     bigint  NOT NULL,
    family   bigint  NOT NULL,
    segment  integer NOT NULL,
    position integer NOT NULL,
    response integer NOT NULL,
    scope    bytea   NOT NULL,
    digest   bytea   NOT NULL,
    PRIMARY KEY (tenant, scope, digest, stored, family, segment, position, response)
);

-- For those who remove commits.
CREATE INDEX sightings_by_place ON thinkback.sightings (tenant, family, segment, position);
