-- Format 1 of a gateway's own state. Times are microseconds UTC, digests SHA-256; what is sealed only the gateway opens.

CREATE TABLE thinkback_gateway.keys (
    id      text   COLLATE "C" NOT NULL PRIMARY KEY,
    digest  bytea  NOT NULL UNIQUE,
    ending  text   COLLATE "C" NOT NULL,
    tenant  text   COLLATE "C" NOT NULL,
    name    text   COLLATE "C" NOT NULL,
    terms   bytea  NOT NULL,
    created bigint NOT NULL,
    expires bigint,
    revoked bigint
);

-- An empty place on the page lets a sum be changed without touching the index.
CREATE TABLE thinkback_gateway.spending (
    key       text   COLLATE "C" NOT NULL,
    period    text   COLLATE "C" NOT NULL,
    requests  bigint NOT NULL,
    input     bigint NOT NULL,
    output    bigint NOT NULL,
    reasoning bigint NOT NULL,
    PRIMARY KEY (key, period)
) WITH (fillfactor = 50);

-- Without an answer it is a claim of `owner`. Either ends at `until`.
CREATE TABLE thinkback_gateway.replays (
    tenant text   COLLATE "C" NOT NULL,
    slot   bytea  NOT NULL,
    body   bytea  NOT NULL,
    owner  text   COLLATE "C" NOT NULL,
    until  bigint NOT NULL,
    answer bytea,
    PRIMARY KEY (tenant, slot)
);
-- What is sealed does not compress.
ALTER TABLE thinkback_gateway.replays ALTER COLUMN answer SET STORAGE EXTERNAL;

CREATE INDEX replays_by_end ON thinkback_gateway.replays (until);

CREATE TABLE thinkback_gateway.carriers (
    tenant   text   COLLATE "C" NOT NULL,
    scope    bytea  NOT NULL,
    response bytea  NOT NULL,
    until    bigint NOT NULL,
    sealed   bytea  NOT NULL,
    PRIMARY KEY (tenant, scope, response)
);
ALTER TABLE thinkback_gateway.carriers ALTER COLUMN sealed SET STORAGE EXTERNAL;

CREATE INDEX carriers_by_end ON thinkback_gateway.carriers (until);
