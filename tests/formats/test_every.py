"""Laws of every reader: nothing that a file holds makes it raise, and the same bytes are the same commits."""

from __future__ import annotations

import itertools
import json
import random
import re
from typing import Any

import msgspec
import pytest

from tests.formats.samples import SAMPLES, drafts, read
from thinkback.errors import NotFoundError
from thinkback.formats.history import Answer, Entry, History, Left, Read, Source, by_content, key_of, placed
from thinkback.formats.registry import MODULES, program
from thinkback.model import canonical
from thinkback.model.blocks import Carrier, Origin, Text, ThinkingBlock
from thinkback.model.commits import Compaction, Content, Draft, Message, Response, decode_payload, fits

ODD: tuple[Any, ...] = (None, True, -1, 1e308, "", "\ud800", "2026-13-99", [], {}, [[]], [{}], [None, 7], {"type": 5})


def swapped(value: Any, chance: random.Random) -> Any:
    """A value in which one member, somewhere, is of another type."""
    if not isinstance(value, dict | list) or not value or chance.random() < 0.2:
        return chance.choice(ODD)
    at = chance.choice([*value] if isinstance(value, dict) else range(len(value)))
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    copy[at] = swapped(value[at], chance)
    return copy


def damaged(data: bytes, seed: int) -> bytes:
    """A file that was cut, in which bytes are others, or values of other types."""
    chance = random.Random(seed)
    way = chance.random()
    if way < 0.2:
        return data[: chance.randrange(len(data))]
    if way < 0.4:
        bytes_there = bytearray(data)
        for _ in range(chance.randrange(1, 9)):
            bytes_there[chance.randrange(len(data))] = chance.randrange(256)
        return bytes(bytes_there)
    lines = data.splitlines(keepends=True)
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(lines))
        lines[at] = json.dumps(swapped(json.loads(lines[at]), chance)).encode() + b"\n"
    return b"".join(lines)


def check(found: Read) -> None:
    """Parents stand before what follows them, and each draft is one that a log can hold."""
    for history in found.sessions:
        ids = [""]
        for entry in history.entries:
            assert entry.parent in ids
            assert entry.id not in ids
            assert 0 <= entry.time < 2**63
            ids.append(entry.id)
        for draft in drafts(history):
            assert fits(draft.kind, decode_payload(canonical.encode(draft.value)))


@pytest.mark.parametrize("name", sorted(MODULES))
def test_no_file_makes_a_reader_raise(name: str) -> None:
    """Whatever is cut off or of another type: what can be read is, and can be stored."""
    assert read(name, SAMPLES[name]).sessions
    for seed in range(400):
        check(read(name, damaged(SAMPLES[name], seed)))
    deep = b'{"a":' * 10_000 + b"1" + b"}" * 10_000
    check(program(name).read(Source("file", [deep + b"\n", b"x", b"y\n", b"\xff\xfe\n"])))


@pytest.mark.parametrize("name", sorted(MODULES))
def test_no_depth_makes_a_reader_raise(name: str) -> None:
    """Ten thousand levels in any member of a line, or as many as JSON can have: it is a damaged line."""
    lines = SAMPLES[name].splitlines(keepends=True)
    for (at, line), depth in itertools.product(enumerate(lines), (240, 10_000)):
        record, deep = json.loads(line), b'{"text":[' * depth + b"]}" * depth
        for member in record if isinstance(record, dict) else ():
            changed = json.dumps({**record, member: "@@"}).encode().replace(b'"@@"', deep) + b"\n"
            check(read(name, b"".join((*lines[:at], changed, *lines[at + 1 :]))))


@pytest.mark.parametrize("name", ["chatgpt", "claude-ai", "claude-code", "pi"])
def test_parents_in_a_circle_end(name: str) -> None:
    """Each entry stands behind one that was read before it, or at the beginning."""
    names = (b'"parentUuid"', b'"parentId"', b'"parent"', b'"parent_message_uuid"')
    ids = dict.fromkeys(re.findall(rb'"(?:uuid|id)": *("[^"]+")', SAMPLES[name]))
    for id in ids:
        circle = SAMPLES[name]
        for member in names:
            circle = re.sub(member + rb': *(null|"[^"]*")', member + b": " + id, circle)
        check(read(name, circle))


@pytest.mark.parametrize("name", sorted(MODULES))
def test_a_reader_knows_its_own_files(name: str) -> None:
    """And no other program's; databases tell it by their names."""
    databases = {other for other in MODULES if program(other).tables}
    data = b"SQLite format 3\0" if name in databases else SAMPLES[name]
    expected = databases if name in databases else {name}
    assert expected == {other for other in MODULES if program(other).is_own(data)}
    assert not program(name).is_own(b"\x00\n[]\n{}\n")


@pytest.mark.parametrize("name", sorted(MODULES))
def test_nothing_goes_back_unless_somebody_vouched(name: str) -> None:
    """No response has an endpoint, and none is in a dialect; vouched for, it is where its blocks are from."""
    history: History = read(name, SAMPLES[name]).sessions[0]
    assert read(name, SAMPLES[name]).sessions[0] == history
    for draft in drafts(history, "response"):
        assert isinstance(draft.value, Response)
        own = draft.value.origin
        stored = placed(draft, name).value
        assert isinstance(stored, Response)
        assert Origin(name, "", own.requested_model, own.served_model) == stored.origin
        there = Origin(own.dialect or "gemini", "https://api.example", "", "", "me", True)
        vouched = placed(draft, name, there).value
        assert isinstance(vouched, Response)
        assert ("https://api.example" if own.dialect else "") == vouched.origin.endpoint
        elsewhere = placed(draft, name, Origin("mistral", "https://api.example", "")).value
        assert isinstance(elsewhere, Response)
        assert elsewhere.origin.endpoint == ""
    other = Draft("turn_ended", drafts(history, "turn_ended")[0].value)
    assert other is placed(other, name)


def test_a_program_that_is_not_known_is_refused() -> None:
    """With those that are."""
    with pytest.raises(NotFoundError, match="'emacs' cannot be read"):
        program("emacs")


def test_what_is_left_out_is_counted_with_its_first_line() -> None:
    """A line that is too long is one of the things."""
    found = program("codex").read(Source("file", [b"{}\n", b"x", b"y\n", b"{}x\n", b"x", b"y"]))
    assert (Left("a line that is too long", 2, 2), Left("a damaged line", 1, 3)) == found.left


def test_a_file_cannot_fill_the_report_with_kinds() -> None:
    """Of kinds that it invents some are named, cut, and the others counted together."""
    lines = (json.dumps({"type": "k" * 500 + str(at)[::-1]} | {"payload": {}}).encode() + b"\n" for at in range(150))
    many = (json.dumps({"type": f"{at}{'k' * 500}", "payload": {}}).encode() + b"\n" for at in range(150))
    (one,), found = (program("codex").read(Source("file", each)).left for each in (lines, many))
    assert (80, 150) == (len(one.what), one.count)
    assert (101, Left("things of other kinds", 50, 101)) == (len(found), found[-1])


def test_entries_without_ids_go_by_what_they_say_and_when() -> None:
    """Wherever they stand: a copy that begins later has the same; of equal ones the later has a number."""
    said = (Draft("user", Message("yes")),)
    block = ThinkingBlock("Why not.", carriers=(Carrier("item_id", "rs_1"),))
    answer = Answer([block, Text("Done.")], "m")
    summary = (Draft("compaction", Compaction("model", "So far.", last="2")),)
    entries = (
        Entry("1", "", 5, said),
        Entry("2", "1", 5, said),
        Entry("3", "2", 6, answer.drafts("codex", "s", "3")),
        Entry("4", "3", 7, summary),
    )
    whole = by_content(History("s", entries, "4"), "codex")
    first, second, third, last = whole.entries
    assert (f"{first.id} 2", second.id, last.id) == (second.id, third.parent, whole.tip)
    assert second.id == last.drafts[0].value.last  # type: ignore[union-attr]
    assert {key_of("codex", "s", third.id), ""} == {draft.response for draft in third.drafts}
    cut_answer = msgspec.structs.replace(answer, blocks=[block]).drafts("codex", "s", "1")
    (again,) = by_content(History("s", (Entry("1", "", 6, cut_answer),), "1"), "codex").entries
    assert third.id == again.id


def test_what_was_spoken_is_stored_with_its_source() -> None:
    """The id of its entry, as a digest; anything else says itself whose it is."""
    for value in (Message("Hi"), Content("note", "Hi"), Compaction("model", "Hi")):
        kind = {Message: "user", Content: "content", Compaction: "compaction"}[type(value)]
        assert "k" == placed(Draft(kind, value), "pi", source="k").value.source  # type: ignore[union-attr, arg-type]
