"""What leaves with a shared file: what was said, word for word, and nothing else unless it is asked for."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from thinkback.log.erasing import tombstone
from thinkback.log.seal import seal
from thinkback.log.sharing import Leaving, Sharing
from thinkback.model import canonical
from thinkback.model.blocks import Carrier, Media, Origin, Text, ThinkingBlock, ToolCall, ToolResult, Unknown
from thinkback.model.commits import (
    LEFT_OUT,
    Annotation,
    BranchSummary,
    Commit,
    Compaction,
    Content,
    Draft,
    Erased,
    Failure,
    Head,
    Merge,
    Message,
    Payload,
    PermissionDecision,
    Repair,
    Request,
    Response,
    Step,
    Tool,
    Tools,
    TurnEnded,
    Usage,
    decode_payload,
    surviving,
)

HELD = (Carrier("encrypted", "OPAQUE"),)
WIRE = '{"all":"OPAQUE"}'
HERE = Origin("anthropic", "https://h", "m", "m-1", "acct-1", True, "user-1", "r0")
BARE = Origin("anthropic", "", "m", "m-1", request="r0")
PLACE = {"endpoint": "e", "account": "acct-1", "base_url": "https://h"}
DIGESTS = ("a", "b", "c", "d", "e", "f", "g")
RECORD = Request(PLACE, {}, ("r",), '{"user":"u"}', *DIGESTS, basis="B")
NOTHING = Sharing()
EVERYTHING = Sharing(True, True)


def left(value: Payload, sharing: Sharing = NOTHING) -> Payload:
    """What leaves of one payload."""
    return Leaving(sharing, 9).payload(value)


def commit(value: Payload, kind: Any = "other") -> Commit:
    """A commit of its own."""
    return seal(Step("1", (Draft(kind, value),), 1), Head())[0]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Text("hi", carriers=HELD, wire=WIRE, origin=HERE), Text("hi", origin=BARE)),
        (ThinkingBlock("deep", signature="OPAQUE", carriers=HELD, wire=WIRE), ThinkingBlock("")),
        (ThinkingBlock("deep", inner=((2, "</think><think>"),)), ThinkingBlock("")),
        (ToolCall("c", "look", "{}", carriers=HELD, wire=WIRE), ToolCall("c", "look", "{}")),
        (ToolResult("c", "7", carriers=HELD, wire=WIRE, dialect="d"), ToolResult("c", "7", dialect="d")),
        (Media("image/png", "AAAA", carriers=HELD, wire=WIRE), Media("image/png", "AAAA")),
        (Unknown(WIRE, HELD), Unknown("")),
        (Message("hi", (Text("hi", wire=WIRE), Unknown(WIRE)), wire=WIRE), Message("hi", (Text("hi"),))),
        (
            Response(HERE, "id-1", "stop", message="{}", envelope=WIRE, error=Failure("not acct-1", upstream="acct-1")),
            Response(BARE, "", "stop", error=Failure("not acct-1", upstream="acct-1")),
        ),
        (RECORD, Request({"endpoint": "e"}, {}, ("r",), "{}", *DIGESTS)),
        (Repair("block", ("b",), "no", "https://h", "m"), Repair("block", ("b",), "no", "", "m")),
    ],
)
def test_nothing_that_nobody_said_leaves(value: Payload, expected: Payload) -> None:
    """Carriers, verbatim objects, thoughts, accounts, end users, addresses, parameters."""
    assert expected == left(value)


@pytest.mark.parametrize(
    "value",
    [
        Message("hi", dialect="d"),
        Tools((Tool("look", wire="{}"),)),
        Usage(1, 2, wire="{}"),
        Annotation("h", reason="why"),
        Content("note", "text", data="{}"),
        Compaction("manual", "short"),
        BranchSummary("short"),
        Merge("b", "h"),
        TurnEnded("failed", "why"),
        PermissionDecision("c", "go", "denied", "person", "runs", "why", "no"),
        Erased("asked", 3),
    ],
)
def test_what_was_said_leaves_as_it_is(value: Payload) -> None:
    """With its digest."""
    said = commit(value)
    assert said is Leaving(Sharing(), 9).commit(said)


def test_each_wish_brings_its_part() -> None:
    """Reasoning its text, carriers the opaque values, both the verbatim objects; the account only a whole copy."""
    thought = ThinkingBlock("deep", signature="OPAQUE", carriers=HELD, wire=WIRE, origin=HERE)
    at = msgspec.structs.replace(BARE, endpoint="https://h")
    assert ThinkingBlock("deep", origin=BARE) == left(thought, Sharing(reasoning=True))
    kept = ThinkingBlock("", signature="OPAQUE", carriers=HELD, origin=at)
    assert kept == left(thought, Sharing(carriers=True))
    assert msgspec.structs.replace(thought, origin=at) == left(thought, EVERYTHING)
    answer = Response(HERE, "id-1", message="{}", envelope="{}")
    assert Response(at, "id-1", message="{}") == left(answer, EVERYTHING)
    said = Message("hi", (Unknown(WIRE),), wire=WIRE)
    assert said == left(said, EVERYTHING)
    whole = commit(thought)
    assert whole is Leaving(Sharing(complete=True), 9).commit(whole)


def test_what_is_left_out_is_named() -> None:
    """For the head of the file."""
    assert ("reasoning", "carriers", "accounts") == Sharing().left_out
    assert ("reasoning", "accounts") == Sharing(carriers=True).left_out
    assert () == Sharing(complete=True).left_out


def test_a_payload_that_loses_something_becomes_a_tombstone() -> None:
    """It says why and when, and what is left; hash and digest stay."""
    before = commit(Text("hi", carriers=HELD))
    after = Leaving(Sharing(), 9).commit(before)
    assert Erased(LEFT_OUT, 9, '{"type":"text","text":"hi"}') == after.value == decode_payload(after.payload)
    assert (before.hash, before.digest) == (after.hash, after.digest)
    assert after is Leaving(Sharing(), 10).commit(after)


def test_of_what_nobody_can_read_nothing_is_left() -> None:
    """An object without its source, a thought without its text: they are gone, not empty."""
    for value in (ThinkingBlock("deep", signature="OPAQUE", carriers=HELD), ThinkingBlock("deep", kind="summary")):
        assert Erased(LEFT_OUT, 9) == Leaving(NOTHING, 9).commit(commit(value)).value
    assert Erased(LEFT_OUT, 9) == Leaving(Sharing(carriers=True), 9).commit(commit(Unknown(WIRE, HELD))).value
    whole = commit(Unknown(WIRE, HELD))
    assert whole is Leaving(EVERYTHING, 9).commit(whole)


def test_what_was_erased_before_keeps_its_reason() -> None:
    """A remainder that still has something to be left out loses it."""
    stone = tombstone("asked", 3, Text("***", carriers=HELD))
    after = Leaving(Sharing(), 9).commit(commit(stone)).value
    assert isinstance(after, Erased)
    assert ("asked", 3, Text("***")) == (after.reason, after.time, surviving(after))


def test_providers_repeat_accounts() -> None:
    """In errors, refusals and reasons they are blotted out once they are known, wherever they came from."""
    leaving = Leaving(Sharing(carriers=True), 9)
    leaving.commit(commit(RECORD))
    leaving.commit(commit(Text("x", origin=Origin("d", "", "", account="acct-1-b", end_user="user-1"))))
    refused = leaving.commit(commit(Repair("block", (), "acct-1-b has no more", "https://acct-1.h", "m"))).value
    assert Repair("block", (), "*** has no more", "", "m") == surviving(refused)
    ended = leaving.commit(commit(TurnEnded("failed", "user-1 of acct-1"))).value
    assert TurnEnded("failed", "*** of ***") == surviving(ended)
    failed = leaving.commit(commit(Response(HERE, error=Failure("acct-1?", upstream="user-1!")))).value
    answer = surviving(failed)
    assert isinstance(answer, Response)
    assert Failure("***?", upstream="***!") == answer.error
    assert "acct-1" not in canonical.encode(answer).decode()
