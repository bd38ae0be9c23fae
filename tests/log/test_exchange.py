"""Lines of a file: what is written comes back, what was changed is named with its line."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.stores.test_properties import steps
from thinkback.errors import ExportFileError, FormatVersionError
from thinkback.log.erasing import tombstone
from thinkback.log.exchange import Header, Line, Tip, commit_line, header_line, read, unwritten
from thinkback.log.seal import head_of, seal
from thinkback.model import canonical
from thinkback.model.blocks import Text
from thinkback.model.commits import Commit, Draft, Head, Message, Step, commit_hash

HELLO = Step("1", (Draft("user", Message("hello")), Draft("assistant", Text("hi"), "r", 0)), 7)


def header(*branches: tuple[str, Head], **fields: Any) -> Header:
    """A session with its branches."""
    tips = tuple(Tip(name, head.hash, head.seq) for name, head in branches)
    return Header(**{"id": "s", "name": "s", "created": 1, "family": "s", "branches": tips, **fields})


def run(commits: Sequence[Commit], branch: str = "main") -> list[bytes]:
    """The lines of a branch."""
    return [commit_line(commit, branch if at == 0 else "") for at, commit in enumerate(commits)]


def file_of(commits: Sequence[Commit], **fields: Any) -> list[bytes]:
    """A whole file of one branch."""
    return [header_line(header(("main", head_of(commits)), **fields)), *run(commits)]


def commits_of(lines: Sequence[bytes]) -> list[Commit]:
    """The commits that are read."""
    return [item.commit for _, item in read(lines) if isinstance(item, Line)]


def erased(commit: Commit) -> Commit:
    """The commit with a tombstone."""
    stone = tombstone("asked", 9, Message("***"))
    return msgspec.structs.replace(commit, value=stone, payload=canonical.encode(stone))


@given(steps.filter(lambda step: len(step.drafts) > 0))
def test_commits_survive_their_lines(step: Step) -> None:
    """Whatever they say, half characters and line ends among it: equal in every field, in lines that JSON reads."""
    commits = seal(step, Head())
    lines = file_of(commits)
    assert commits == commits_of(lines)
    assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in lines)
    assert [commit.hash for commit in commits] == [json.loads(line)["hash"] for line in lines[1:]]


@given(st.text(st.characters(), max_size=20), st.dictionaries(st.text(st.characters()), st.text(st.characters())))
def test_headers_survive_their_lines(name: str, settings: dict[str, str]) -> None:
    """With any name and settings."""
    said = header(("main", Head()), name=name, settings=settings, left_out=("carriers",))
    assert [(1, said)] == list(read([header_line(said)]))


def test_payloads_can_be_read_by_people() -> None:
    """A payload stands in its line as it is, so that any JSON tool finds its way."""
    line = json.loads(file_of(seal(HELLO, Head()))[2])
    assert ("r", 0, "hi") == (line["response"], line["index"], line["payload"]["text"])


@pytest.mark.parametrize(
    "payload",
    [
        b'{"type":"message","text":"\\ud83d"}',
        b'{"type":"message",\n"text":"a"}',
        b'{"type":"message","text":"a"}\n',
        b'{"type":"message","text":"\xed\xa0\xbd"}',
        b'{"type":"message","text":"1.50e3 \\u0041"}',
    ],
)
def test_payloads_of_other_programs_keep_their_bytes(payload: bytes) -> None:
    """However they are spelled: the digest is over the bytes."""
    (commit,) = seal(Step("1", (Draft("user", Message("")),), 7), Head())
    digest = canonical.digest(payload)
    hash = commit_hash((), "user", digest, "", "", -1, 7)
    (there,) = commits_of(file_of([msgspec.structs.replace(commit, payload=payload, digest=digest, hash=hash)]))
    assert (payload, hash) == (there.payload, there.hash)


def test_tombstones_come_back() -> None:
    """With the digest of what stood there."""
    commits = seal(HELLO, Head())
    gone = [erased(commits[0]), commits[1]]
    assert gone == commits_of(file_of(gone))


def test_every_byte_counts() -> None:
    """No change of one byte goes unnoticed, in headers, commits and tombstones."""
    commits = seal(HELLO, Head())
    whole = b"".join(file_of([erased(commits[0]), commits[1]], settings={"reasoning.effort": "high"}))
    expected = list(read(io.BytesIO(whole)))
    for at in range(len(whole)):
        for byte in {whole[at] ^ 1, whole[at] ^ 32, 0x20, 0x0A} - {whole[at]}:
            changed = whole[:at] + bytes([byte]) + whole[at + 1 :]
            try:
                found = list(read(io.BytesIO(changed)))
            except (ExportFileError, FormatVersionError):
                continue
            assert expected == found


def test_a_changed_line_is_named() -> None:
    """With its number, in the message and for programs."""
    lines = file_of(seal(HELLO, Head()))
    with pytest.raises(ExportFileError, match="line 3: the payload was changed") as caught:
        list(read([*lines[:2], lines[2].replace(b"hi", b"ho")]))
    assert 3 == caught.value.details["line"]


def test_a_newer_file_is_told() -> None:
    """By the version of its first line."""
    with pytest.raises(FormatVersionError, match="format 2"):
        list(read([b'{"thinkback":2,"sessions":[]}\n'.replace(b',"sessions":[]', b"")]))


TWO = seal(Step("2", (Draft("user", Message("a")), Draft("user", Message("b"))), 3), Head())
ELSE = seal(Step("3", (Draft("user", Message("c")),), 4), head_of(TWO[:1]))
SAID = seal(Step("4", (Draft("assistant", Text("hi")),), 5), Head())[0]
FULL = [header_line(header(("main", head_of(TWO)), ("b", head_of(ELSE)))), *run(TWO), *run(ELSE, "b")]


def rewritten(line: bytes, **fields: Any) -> bytes:
    """The line with other fields."""
    return json.dumps({**json.loads(line), **fields}, separators=(",", ":")).encode() + b"\n"


def forged(**fields: Any) -> bytes:
    """The first line of a file whose fields were changed, and its hash with them."""
    row = {**json.loads(FULL[1]), **fields}
    parents = tuple(row.get("parents", ()))
    parts = (parents, row["kind"], row["digest"], row.get("edit", ""), row.get("response", ""), -1, row["time"])
    return rewritten(FULL[1], **fields, hash=commit_hash(*parts))


@pytest.mark.parametrize(
    ("change", "line", "what"),
    [
        (lambda lines: lines[:2], 3, "commits of branch 'main' are missing"),
        (lambda lines: [*lines[:2], lines[3]], 3, "commits of branch 'main' are missing"),
        (lambda lines: [lines[0], *lines[2:]], 2, "a commit of a branch that is not named"),
        (lambda lines: [*lines[:3], rewritten(lines[3], branch="")], 4, "a commit of a branch that is not named"),
        (lambda lines: [*lines[:2], rewritten(lines[2], seq=2)], 3, "does not follow the commit before it"),
        (lambda lines: [*lines[:2], *run(seal(HELLO, Head()))[1:]], 3, "does not follow the commit before it"),
        (lambda lines: [*lines[:3], rewritten(lines[3], branch="c")], 4, "no commits of a branch 'c'"),
        (lambda lines: [*lines, *run(TWO)], 5, "no commits of a branch 'main'"),
        (lambda lines: lines[1:], 1, "not a line of a thinkback export"),
        (lambda lines: [b"hello\n"], 1, "not a line of a thinkback export"),
        (lambda lines: [lines[0], b"hello\n"], 2, "malformed"),
        (lambda lines: [lines[0].replace(b'"created":1', b'"created":2')], 1, "what it says of the session"),
        (lambda lines: [lines[0], rewritten(lines[1], time=8)], 2, "the fields of the commit were changed"),
        (lambda lines: [lines[0], rewritten(lines[1], seq=1)], 2, "cannot have seq 1"),
        (lambda lines: [lines[0], forged(parents=["0" * 64], seq=-3)], 2, "cannot have seq -3"),
        (lambda lines: [lines[0], rewritten(lines[1], digest="x")], 2, "'x' is not a hash"),
        (lambda lines: [lines[0], forged(edit="x")], 2, "'x' is not a hash"),
        (
            lambda lines: [lines[0], rewritten(lines[1], digest="0" * 64, tombstone=json.loads(lines[1])["digest"])],
            2,
            "another payload stands in place",
        ),
        (lambda lines: [lines[0], forged(kind="repair")], 2, "a commit of kind 'repair' does not say such things"),
        (lambda lines: [lines[0], forged(kind="x")], 2, "a commit of kind 'x' does not say such things"),
        (lambda lines: [lines[0], *run([erased(SAID)])], 2, "a commit of kind 'assistant' does not say such things"),
    ],
)
def test_what_does_not_belong_is_named(change: Callable[[list[bytes]], list[bytes]], line: int, what: str) -> None:
    """Lines that are missing, out of order, doubled or of something else."""
    with pytest.raises(ExportFileError, match=f"^line {line}: .*{what}"):
        list(read(change(FULL)))


def test_sessions_of_a_file_are_counted() -> None:
    """A file that ends after some of its sessions is not whole; two whole files make one."""
    first, second = (header_line(header(("main", Head()), number=number, of=2)) for number in (1, 2))
    assert [1, 2, 3, 4] == [number for number, _ in read([first, second, first, second])]
    for lines, what in (([first], "ends after session 1 of 2"), ([second], "session 1 is missing")):
        with pytest.raises(ExportFileError, match=what):
            list(read(lines))


def test_nothing_is_nothing() -> None:
    """An empty log is an empty file, and blank lines are no lines."""
    assert [] == list(read([]))
    assert [3] == [number for number, _ in read([b"\n", b"  \n", header_line(header(("main", Head())))])]


@pytest.mark.covers(True)
@given(st.lists(st.integers(0, 3), max_size=5), st.integers(0, 5))
def test_what_has_a_line_is_not_written_again(texts: list[int], shared: int) -> None:
    """Of a history, whatever comes behind the last commit that has one."""
    history = seal(Step("1", tuple(Draft("user", Message(str(text))) for text in texts), 1), Head())
    written = {commit.hash for commit in history[:shared]}
    assert history[shared:] == unwritten(history, written)
    assert {commit.hash for commit in history} == written
    assert [] == unwritten(history, written)
