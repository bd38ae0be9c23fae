-- Format 3: an index of what was said and thought. It is made from the log, lags behind it and can be made again.
-- docs/format.md explains every column.

CREATE TABLE search_state (
    one     INTEGER PRIMARY KEY CHECK (one = 1),
    form    INTEGER NOT NULL,
    arrival INTEGER NOT NULL,
    changes INTEGER NOT NULL,
    dropped INTEGER NOT NULL
) STRICT;

INSERT INTO search_state VALUES (1, 0, 0, 0, 0);

CREATE TABLE search_labels (
    label  INTEGER PRIMARY KEY,
    kind   TEXT    NOT NULL,
    models TEXT    NOT NULL,
    tools  TEXT    NOT NULL,
    UNIQUE (kind, models, tools)
) STRICT;

CREATE TABLE search_entries (
    arrival  INTEGER PRIMARY KEY,
    label    INTEGER NOT NULL,
    tokens   INTEGER NOT NULL,
    priority TEXT    NOT NULL
) STRICT;

CREATE TABLE search_times (
    zone  INTEGER PRIMARY KEY,
    first INTEGER NOT NULL,
    last  INTEGER NOT NULL
) STRICT;

-- Words without their texts, which are in the payloads alone. They come as they are to be found: the tokenizer has only
-- to part them at spaces.
CREATE VIRTUAL TABLE search_words USING fts5 (words, content = '', columnsize = 0, tokenize = 'ascii');
