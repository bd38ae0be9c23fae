"""Sessions leave a log as JSON Lines and come into another one as they were."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path

from hypothesis import given, settings

from tests.session.histories import Move, build, moves, shape
from tests.stores.samples import put, user_step
from thinkback.log.progress import Meter
from thinkback.log.protocol import Origin as Forked
from thinkback.log.protocol import Store
from thinkback.log.seal import head_of
from thinkback.log.sharing import Sharing
from thinkback.model.blocks import Origin
from thinkback.model.commits import Usage, surviving
from thinkback.session.exchange.exporting import Exported, choose, json_lines
from thinkback.session.exchange.importing import Imported, import_lines
from thinkback.stores import open_store

WHOLE = Sharing(complete=True)


def exported(log: Store, session: str = "", sharing: Sharing = WHOLE, family: bool = False) -> bytes:
    """The file of an export."""
    return b"".join(json_lines(log, choose(log, session, family), sharing, 99, Exported(), Meter(None, 0, "")))


def imported(log: Store, file: bytes) -> Imported:
    """What an import did."""
    return import_lines(log, io.BytesIO(file))


@given(moves)
def test_what_comes_in_is_what_went_out(sequence: list[Move]) -> None:
    """Any log, whole or for sharing: the same sessions, families, branches, settings and hashes, and the same file."""
    source, copy, shared = open_store(":memory:"), open_store(":memory:"), open_store(":memory:")
    build(source, sequence)
    file = exported(source)
    imported(copy, file)
    assert shape(source) == shape(copy)
    assert file == exported(copy)
    assert 0 == imported(copy, file).commits
    assert shape(source) == shape(copy)
    given_away = exported(source, sharing=Sharing())
    imported(shared, given_away)
    assert given_away == exported(shared, sharing=Sharing())
    assert given_away == exported(copy, sharing=Sharing())
    assert [] == list(shared.fsck()) == list(copy.fsck())


@settings(max_examples=25)
@given(moves)
def test_one_session_brings_what_it_stands_on(sequence: list[Move]) -> None:
    """Each session by itself, through a SQLite file: its branches and commits, its parents as far as it needs them."""
    source = open_store(":memory:")
    build(source, sequence)
    for info in source.list_sessions():
        with tempfile.TemporaryDirectory() as place:
            copy = open_store(Path(place) / "log.db", "normal")
            try:
                file = exported(source, info.id)
                imported(copy, file)
                assert file == exported(copy, info.id)
                (there,) = (each for each in shape(copy) if each[0].id == info.id)
                (here,) = (each for each in shape(source) if each[0].id == info.id)
                assert here == there
                assert 0 == imported(copy, file).commits
                assert [] == list(copy.fsck())
            finally:
                copy.close()


@given(moves)
def test_nothing_opaque_is_in_what_is_shared(sequence: list[Move]) -> None:
    """Of any log: no carrier, signature, verbatim object, thought, account or end user, in whatever is left."""
    source, shared = open_store(":memory:"), open_store(":memory:")
    build(source, sequence)
    imported(shared, exported(source, sharing=Sharing()))
    for info in shared.list_sessions():
        for branch in shared.refs.list(info.id):
            for commit in shared.read(info.id, branch=branch.name):
                value = surviving(commit.value)
                held = [getattr(value, name, "") for name in ("carriers", "signature", "thought", "envelope", "basis")]
                origin = getattr(value, "origin", None) or Origin("", "", "")
                held += [origin.account, origin.end_user, origin.endpoint]
                held += [getattr(value, "wire", "") if not isinstance(value, Usage) else ""]
                assert [] == [each for each in held if each]


def test_orphans_are_roots_in_a_file() -> None:
    """What forked from a session that was deleted begins for itself, and comes back so."""
    source, copy = open_store(":memory:"), open_store(":memory:")
    source.create_session("root", "root", 1)
    first = put(source, "root", user_step("1"))
    for number, name in enumerate(("one", "two"), 2):
        source.create_session(name, name, number, Forked("root", at=head_of(first), purpose="try"))
        put(source, name, user_step("2", name))
    source.create_session("three", "three", 4, Forked("one", purpose="empty"))
    source.care.delete_session("root")
    for session in ("", "three", "two"):
        file = exported(source, session)
        imported(copy, file)
        assert file == exported(copy, session)
    assert [("one", ""), ("two", ""), ("one", "one")] == [
        (info.family, info.parent) for info in sorted(copy.list_sessions(), key=lambda info: info.created)
    ]
