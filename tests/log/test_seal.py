"""Drafts to commits: place, digest, hash."""

from __future__ import annotations

import hashlib

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from thinkback.log.protocol import Problem, SessionInfo
from thinkback.log.seal import head_of, seal
from thinkback.model import canonical
from thinkback.model.blocks import Text
from thinkback.model.commits import Commit, Draft, Head, Message, Step, commit_hash, decode_payload

STEP = Step("s1", (Draft("user", Message("hello")), Draft("assistant", Text("hi"), "r1", 0)), 17)


def test_commits_follow_each_other() -> None:
    """Each commit has its predecessor as parent and the next number; the first of all has no parent."""
    one, two = seal(STEP, Head())
    assert ((), 0, (one.hash,), 1) == (one.parents, one.seq, two.parents, two.seq)
    three, _ = seal(STEP, head_of([one, two]))
    assert ((two.hash,), 2) == (three.parents, three.seq)


def test_fields() -> None:
    """A commit keeps what its draft and step say; its payload is the canonical JSON of its value."""
    _, commit = seal(STEP, Head())
    assert (commit.kind, commit.value, commit.response, commit.index, commit.time, commit.edit) == (
        "assistant",
        Text("hi"),
        "r1",
        0,
        17,
        "",
    )
    assert commit.payload == canonical.encode(commit.value)
    assert decode_payload(commit.payload) == commit.value


def test_hash() -> None:
    """The digest is that of the payload, the hash covers version, parents, kind, digest, edit, tie and time."""
    one, two = seal(STEP, Head())
    digest = hashlib.sha256(two.payload).hexdigest()
    text = f"1\n{one.hash}\nassistant\n{digest}\n\nr1\n0\n17"
    assert two.digest == digest
    assert two.hash == hashlib.sha256(text.encode()).hexdigest()
    assert two.hash == commit_hash((one.hash,), "assistant", digest, "", "r1", 0, 17)


def test_two_events_are_never_one_commit() -> None:
    """The same words at another time, behind another parent or in another place have another hash."""
    base = seal(STEP, Head())[0].hash
    later = seal(msgspec.structs.replace(STEP, time=18), Head())[0].hash
    behind = seal(STEP, Head("parent", 3))[0].hash
    tied = seal(Step("s1", (Draft("user", Message("hello"), "r", 0),), 17), Head())[0].hash
    assert len({base, later, behind, tied}) == 4


def test_the_id_of_a_step_is_not_part_of_the_event() -> None:
    """A repeated append seals the same commits, whatever its step is called."""
    assert seal(STEP, Head()) == seal(msgspec.structs.replace(STEP, id="s2"), Head())


def test_head_of_nothing() -> None:
    """The head of no commits is that of an empty session; an empty step adds nothing."""
    assert head_of([]) == Head("", -1)
    assert seal(Step("s", (), 1), Head("h", 4)) == []


@given(st.lists(st.text(max_size=5), max_size=8), st.integers(0, 8))
def test_sealing_in_parts(texts: list[str], cut: int) -> None:
    """Drafts sealed in two steps of the same time have the hashes they have in one."""
    drafts = [Draft("user", Message(text)) for text in texts]
    whole = seal(Step("s", tuple(drafts), 1), Head())
    first = seal(Step("a", tuple(drafts[:cut]), 1), Head())
    rest = seal(Step("b", tuple(drafts[cut:]), 1), head_of(first))
    assert whole == [*first, *rest]


def test_what_a_store_tells() -> None:
    """The values that stores give out compare by what they say."""
    info = SessionInfo("i", "n", 1, 2, 3, Head())
    assert info == SessionInfo("i", "n", 1, 2, 3, Head("", -1), {})
    assert Problem("here", "this") != Problem("here", "that")
    assert isinstance(seal(STEP, Head())[0], Commit)
