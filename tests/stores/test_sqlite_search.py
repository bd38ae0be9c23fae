"""The search index inside a SQLite file: what it holds, what it forgets, what it costs."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.stores.samples import file_of, fill, put
from tests.stores.test_search import answer, catch_up, found, said, step
from thinkback.errors import CorruptLogError, StoreError
from thinkback.log import searching
from thinkback.log.protocol import Hit, Query
from thinkback.model import canonical
from thinkback.model.blocks import Text, ThinkingBlock, ToolCall
from thinkback.model.commits import Annotation, Draft, Erased, Message, Priority, Usage
from thinkback.stores import sqlite_search
from thinkback.stores.rows import pack
from thinkback.stores.sqlite import open_sqlite
from thinkback.stores.sqlite_index import changing, scrub
from thinkback.stores.store import LogStore

GONE = canonical.encode(Erased("asked for", 9))


@pytest.fixture
def store(log: Path) -> Iterator[LogStore]:
    """A store whose file can be looked at."""
    opened = open_sqlite(str(log), "normal")
    yield opened
    opened.close()


def overwrite(store: LogStore, hash: str, payload: bytes) -> None:
    """Put other bytes in place of a payload, as erasing does."""
    with file_of(store).write() as db:
        (arrival,) = db.execute("SELECT arrival FROM commits WHERE hash = ?", (bytes.fromhex(hash),)).fetchone()
        with changing(db, [arrival]):
            codec, stored = pack(payload)
            db.execute("UPDATE commits SET codec = ?, payload = ? WHERE arrival = ?", (codec, stored, arrival))
            db.execute("UPDATE summaries SET counted = 0, title = ''")
        scrub(db)


def bytes_of(store: LogStore, log: Path) -> bytes:
    """All that is on the disk."""
    with file_of(store).writer() as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return b"".join(path.read_bytes() for path in log.parent.iterdir())


def test_large_texts_are_taken_in_by_smaller_portions(store: LogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A portion is bounded by its bytes too, and nothing of the log is left out or taken twice."""
    monkeypatch.setattr(sqlite_search, "_MOST_BYTES", 100_000)
    chance = random.Random(1)
    texts = [f"word{at} " + chance.randbytes(20_000).hex() for at in range(20)]
    fill(store, "s", [said(text) for text in texts])
    portions = list(iter(lambda: store.search.fill(5000), 0))
    assert (20, True) == (sum(portions), max(portions) <= 6)
    assert [1] * 20 == [len(store.search.find(Query(f"word{at}"))) for at in range(20)]


def test_the_text_is_stored_once(store: LogStore, log: Path) -> None:
    """The index has words and no texts."""
    fill(store, "s", [said("Xylophone QUARTZ zeppelin")])
    catch_up(store)
    assert 1 == bytes_of(store, log).count(b"Xylophone QUARTZ zeppelin")
    assert b"quartz" in bytes_of(store, log)


def test_what_is_erased_leaves_no_word_in_the_file(store: LogStore, log: Path) -> None:
    """Neither words nor names nor what the neighbours knew of it; everything else is still found."""
    commits = fill(
        store,
        "s",
        [
            *(said(f"mandolin {n}") for n in range(30)),
            step(*answer(ThinkingBlock("the mandolin"), ToolCall("1", "xylophone", '{"key":"zeppelin quartz"}'))),
            *(said(f"mandolin {n}") for n in range(30)),
        ],
    )
    catch_up(store, 7)
    assert 1 == len(found(store, "zeppelin"))
    assert 2 == len(found(store, tool="xylophone"))
    words = (b"zeppelin", b"quartz", b"xylophone")
    assert all(word in bytes_of(store, log) for word in words)
    call = next(commit for commit in commits if commit.kind == "tool_call")
    overwrite(store, call.hash, GONE)
    left = bytes_of(store, log)
    assert [] == [word for word in words if word in left]
    assert [] == found(store, "zeppelin") + found(store, tool="xylophone")
    assert 61 == len(found(store, "mandolin", limit=99))
    _check(store)


def test_what_is_left_of_a_payload_is_found(store: LogStore, log: Path) -> None:
    """Where a part was taken out, the rest is in the index, with the priority that it had."""
    (commit,) = fill(store, "s", [said("the key is quartz today")])
    put(store, "s", step(Draft("annotation", Annotation(commit.hash, Priority.PINNED))))
    catch_up(store)
    rest = canonical.encode(Message("the key is *** today")).decode()
    overwrite(store, commit.hash, canonical.encode(Erased("asked for", 9, rest)))
    assert b"quartz" not in bytes_of(store, log)
    assert [commit.hash] == found(store, '"key is today"', priority="pinned")
    _check(store)


def test_what_is_erased_before_it_is_taken_in_is_never_found(store: LogStore, log: Path) -> None:
    """Also where a filling had read it before, and wanted to store it after."""
    commits = fill(store, "s", [said("zeppelin one"), said("mandolin two")])
    between = [lambda: overwrite(store, commits[0].hash, GONE)]
    read = file_of(store).write_index

    def interrupted():  # type: ignore[no-untyped-def]
        file_of(store).write_index = read  # type: ignore[method-assign]
        between.pop()()
        return read()

    store.search.rebuild()
    file_of(store).write_index = interrupted  # type: ignore[method-assign]
    catch_up(store)
    assert [] == between
    assert b"zeppelin" not in bytes_of(store, log)
    assert [commits[1].hash] == found(store)
    _check(store)


def test_numbers_that_are_given_again_are_taken_in_again(store: LogStore) -> None:
    """Removing the newest commits frees their arrivals: the next ones get them, and are found."""
    fill(store, "s", [said("blue 1"), said("blue 2"), said("blue 3")])
    catch_up(store)
    with file_of(store).write() as db, changing(db, [2, 3]):
        db.execute("DELETE FROM commits WHERE arrival > 1")
        db.execute("DELETE FROM steps WHERE position > 0")
        db.execute("UPDATE branches SET position = 0")
    assert 1 == len(found(store, "blue"))
    put(store, "s", said("green"))
    catch_up(store)
    assert (1, 1) == (len(found(store, "blue")), len(found(store, "green")))
    _check(store)


def test_an_index_of_another_form_is_made_again(store: LogStore) -> None:
    """It finds nothing until then; erasing from it empties it."""
    commits = fill(store, "s", [said("blue"), said("green")])
    catch_up(store)
    for touch in (False, True):
        with file_of(store).write() as db:
            db.execute("UPDATE search_state SET form = 99")
        assert [] == found(store)
        if touch:
            overwrite(store, commits[1].hash, GONE)
            assert [] == found(store)
        assert catch_up(store) > 0
        assert [commits[0].hash] == found(store, "blue")
    _check(store)


def test_a_damaged_index_is_made_again(store: LogStore) -> None:
    """The log is whole: the error says to search again, and that finds everything."""
    commits = fill(store, "s", [said(f"blue {n}") for n in range(300)])
    catch_up(store)
    with file_of(store).write() as db:
        # The blocks after 10 hold words; what a fault on the disk makes of them is anything.
        db.execute("UPDATE search_words_data SET block = substr(block, 1, 30) WHERE id > 10")
    with pytest.raises(StoreError, match="was damaged and is empty now"):
        found(store, "blue")
    catch_up(store)
    assert [commit.hash for commit in reversed(commits)] == found(store, "blue", limit=999)
    _check(store)


def test_damage_of_the_log_itself_is_not_taken_for_the_index(store: LogStore) -> None:
    """It is named as what it is."""
    (commit,) = fill(store, "s", [said("blue")])
    catch_up(store)
    with file_of(store).write() as db:
        db.execute("UPDATE commits SET codec = 7")
    with pytest.raises(CorruptLogError, match=commit.hash):
        found(store, "blue")


def test_reasoning_keeps_its_share_of_what_was_counted(store: LogStore) -> None:
    """When a neighbour is erased, tokens are shared anew among what is left."""
    usage = Usage(reasoning=90)
    commits = fill(
        store, "s", [step(*answer(ThinkingBlock("b" * 20), ThinkingBlock("q" * 10), Text("x"), usage=usage))]
    )
    catch_up(store)
    assert [30, 60] == [hit.tokens for hit in store.search.find(Query(kinds=("reasoning",)))]
    overwrite(store, commits[2].hash, GONE)
    assert [90] == [hit.tokens for hit in store.search.find(Query(kinds=("reasoning",)))]
    _check(store)


def test_more_labels_than_are_asked_for_one_by_one(store: LogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where very many combinations of models and tools fit, or sessions, entries are looked at instead."""
    fill(store, "s", [step(*answer(ThinkingBlock("blue"), ToolCall("1", f"t{n}", "{}"), model="m")) for n in range(9)])
    catch_up(store)
    queries = [Query("blue", model="m"), Query(kinds=("reasoning",), model="m"), Query(model="m", min_tokens=1)]
    queries.append(Query("blue", owners=("s", "gone")))
    expected = [store.search.find(query) for query in queries]
    monkeypatch.setattr(sqlite_search, "MOST_LABELS", 0)
    assert expected == [store.search.find(query) for query in queries]
    assert [9, 9, 18, 9] == [len(hits) for hits in expected]


def test_two_programs_fill_one_index(store: LogStore, log: Path) -> None:
    """Whoever is second goes on where the first stopped; nothing is taken in twice."""
    commits = fill(store, "s", [said(f"blue {n}") for n in range(20)])
    with closing(open_sqlite(str(log), "normal")) as other:
        while store.search.fill(3) + other.search.fill(2):
            pass
        assert 20 == len(found(other, "blue")) == len({*found(store, "blue")})
        assert [commit.hash for commit in reversed(commits)] == found(store, "blue")
    _check(store)


@pytest.mark.parametrize(
    "query",
    [
        Query("blue"),
        Query('"sky blue"', kinds=("reasoning",), session="s", model="m", tool="t"),
        Query(kinds=("reasoning", "user"), min_tokens=5, since=3, until=99, priority=Priority.PINNED),
        Query(),
        Query(before=7, priority=Priority.NORMAL),
    ],
)
def test_a_page_is_read_off_the_index(store: LogStore, query: Query) -> None:
    """No query gathers and sorts all that fits to give the newest."""
    fill(store, "s", [step(*answer(ThinkingBlock("sky blue"), ToolCall("1", "t", "{}"), model="m"), time=5)])
    catch_up(store)
    statements: list[str] = []
    with file_of(store).read() as db:
        assert isinstance(db, sqlite3.Connection)
        db.set_trace_callback(statements.append)
    store.search.find(query)
    with file_of(store).read() as db:
        assert isinstance(db, sqlite3.Connection)
        db.set_trace_callback(None)
        (page,) = [sql for sql in statements if "ORDER BY" in sql and "CROSS JOIN commits" in sql]
        plan = " ".join(row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {page}"))
    assert "TEMP B-TREE" not in plan
    assert "SCAN c" not in plan


def _check(store: LogStore) -> None:
    """The index is consistent in itself and holds what an index that is made now would."""
    with file_of(store).write() as db:
        db.execute("INSERT INTO search_words (search_words) VALUES ('integrity-check')")
        as_it_is = db.execute("SELECT * FROM search_entries").fetchall()
        assert (searching.FORM,) == db.execute("SELECT form FROM search_state").fetchone()
    hits = store.search.find(Query(limit=1000))
    store.search.rebuild()
    catch_up(store)
    assert hits == store.search.find(Query(limit=1000))
    with file_of(store).read() as db:
        assert len(as_it_is) == len(db.execute("SELECT * FROM search_entries").fetchall())


@pytest.mark.parametrize("most", [1, 3, 32])
def test_hits_of_any_order_of_storing_come_newest_first(
    store: LogStore, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """Stretches of the log whose times overlap are merged; pages of any size join up to the same list."""
    monkeypatch.setattr("thinkback.stores.sqlite_search.MOST_STRETCHES", most)
    monkeypatch.setattr("thinkback.stores.sqlite_index.ZONE", 4)
    monkeypatch.setattr("thinkback.stores.sqlite_search.ZONE", 4)
    chance = random.Random(5)
    times = [*range(40), *(chance.randrange(60) for _ in range(120)), *range(20, 60)]
    fill(store, "s", [step(Draft("user", Message(f"blue {n}")), time=time) for n, time in enumerate(times)])
    catch_up(store)
    found = store.search.find(Query("blue", limit=200))
    assert sorted(((hit.time, hit.arrival) for hit in found), reverse=True) == [(h.time, h.arrival) for h in found]
    assert sorted(times) == sorted(hit.time for hit in found)
    for size in (1, 7, 50):
        pages: list[Hit] = []
        while page := store.search.find(Query("blue", limit=size, before=pages[-1].arrival if pages else None)):
            pages += page
        assert found == pages
    middle = [hit for hit in found if 20 <= hit.time < 40]
    assert middle == store.search.find(Query("blue", limit=200, since=20, until=40))
