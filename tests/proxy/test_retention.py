"""What may not be recorded is never stored, and the chain of hashes is that of what was said."""

from __future__ import annotations

import pytest

from thinkback.log.seal import head_of, seal
from thinkback.model.blocks import Carrier, Origin, Text, ThinkingBlock, ToolCall
from thinkback.model.commits import Draft, Erased, Head, Message, Response, Step, Tool, Tools, TurnEnded, Usage
from thinkback.proxy.retention import Recording, kept, pack, unpack
from thinkback.stores import open_store

SECRET = "what nobody may read"
THOUGHT = ThinkingBlock(f"because {SECRET}", carriers=(Carrier("encrypted", "gAAA"),))
DRAFTS = (
    Draft("tools", Tools((Tool("look", SECRET, "{}"),))),
    Draft("user", Message(SECRET)),
    Draft("response", Response(Origin("anthropic", "https://x", "m"), id=SECRET, blocks=3), "r1"),
    Draft("reasoning", THOUGHT, "r1", 0),
    Draft("assistant", Text(SECRET), "r1", 1),
    Draft("tool_call", ToolCall("c1", "look", f'{{"a":"{SECRET}"}}'), "r1", 2),
    Draft("provider_usage", Usage(3, 4), "r1"),
    Draft("turn_ended", TurnEnded("completed")),
)


@pytest.mark.parametrize(("mode", "left"), [("metadata", []), ("reasoning", ["reasoning"])])
def test_what_was_said_is_never_stored(mode: Recording, left: list[str]) -> None:
    """The log has who answered and what it cost, in a chain that verifies."""
    whole = seal(Step("s1", DRAFTS, 7), Head())
    commits = kept(whole, mode)
    store = open_store(":memory:")
    store.create_session("a", "a", 1)
    store.append("a", "s1", commits, Head())
    stored = store.read("a")

    assert left == [commit.kind for commit in stored if SECRET.encode() in commit.payload]
    assert ["provider_usage", "turn_ended"] == [c.kind for c in stored if not isinstance(c.value, Erased)][-2:]
    assert [commit.hash for commit in whole] == [commit.hash for commit in stored]
    assert head_of(whole) == head_of(stored)
    assert [] == list(store.fsck())


def test_everything_is_kept_where_everything_may_be() -> None:
    """Full recording changes nothing."""
    commits = seal(Step("s1", DRAFTS, 7), Head())

    assert commits == kept(commits, "full")


def test_a_response_is_packed_whole() -> None:
    """Kinds, values and places come back; anything else is nothing."""
    drafts = [draft for draft in DRAFTS if draft.response]

    assert drafts == unpack(pack(drafts), "r1")
    assert [] == unpack(b"[1]", "r1") == unpack(b"x", "r1")
