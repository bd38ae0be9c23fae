-- Format 3: who has a turn under way on which branch.

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
