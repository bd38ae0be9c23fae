"""Whom an erasure is about, and what is left when it is done."""

from __future__ import annotations

import msgspec
import pytest

from tests.compile.build import HERE, Talk, call, say, think
from thinkback.log.erasing import (
    Order,
    Selection,
    SessionHistory,
    bare,
    before,
    copied,
    echoed,
    late,
    of_end_user,
    order_for,
    skeleton,
    tombstone,
    without_copies,
)
from thinkback.log.protocol import About, AppendRequest, Sighting
from thinkback.model import canonical
from thinkback.model.blocks import Carrier, Media, Text, ThinkingBlock, ToolCall, ToolResult, Unknown
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
    Priority,
    Repair,
    Request,
    Response,
    Tool,
    Tools,
    TurnEnded,
    Usage,
    decode_payload,
    surviving,
)

ANN = msgspec.structs.replace(HERE, end_user="ann")
BOB = msgspec.structs.replace(HERE, end_user="bob")
RECORD = Request({"account": "a"}, {}, ("r",), '{"user":"ann"}', "", "", "", "", "", "", "", basis="B")


def about(talk: Talk, picked: set[str]) -> list[str]:
    """The kinds that are picked, in order."""
    return [commit.kind for commit in talk.commits if commit.hash in picked]


def told(*talks: Talk) -> list[SessionHistory]:
    """Histories of sessions that are called by number."""
    return [SessionHistory(f"s{number}", talk.commits) for number, talk in enumerate(talks)]


def test_a_turn_is_everything_from_a_question_to_its_end() -> None:
    """Also one of several responses with calls and results; what the program said stays."""
    talk = Talk().system().tools("look")
    talk.user("a").reply(think("t"), call(), origin=ANN).result().reply(say("x"), origin=ANN).end()
    talk.turn("b", origin=BOB)
    expected = ["user", "response", "reasoning", "tool_call", "tool_result", "response", "assistant", "turn_ended"]
    assert expected == about(talk, of_end_user(told(talk), "ann"))


def test_a_turn_without_an_end_ends_with_the_next_question() -> None:
    """As after a crash; two questions before an answer are one turn; an edit is no question."""
    talk = Talk().user("a").user("b").reply(say("x"), origin=ANN)
    talk.add(Draft("user", Message("edited"), edit=talk.commits[0].hash))
    talk.user("c").reply(say("y"), origin=BOB)
    picked = of_end_user(told(talk), "ann")
    assert ["user", "user", "response", "assistant", "user"] == about(talk, picked)
    assert talk.commits[4].hash in picked
    assert ["user", "response", "assistant"] == about(talk, of_end_user(told(talk), "bob"))


def test_nobody_is_nowhere() -> None:
    """Histories that are empty or about others."""
    assert set() == of_end_user(told(Talk(), Talk().turn("a", origin=BOB)), "ann")


def test_what_was_said_about_it_goes_too() -> None:
    """Edits, marks, checkpoints that cover it or trimmed it, copies of it, and what a parent says of the session."""
    talk = Talk().turn("a", say("x"), origin=ANN).turn("b", say("y"), origin=BOB)
    a, b = (commit.hash for commit in talk.commits if commit.kind == "user")
    last = talk.commits[-1].hash
    talk.note("annotation", Annotation(a, Priority.PINNED, reason="ann's"))
    talk.note("annotation", Annotation(b, reason="bob's"))
    talk.add(Draft("user", Message("aa"), edit=a))
    (note,) = talk.add(Draft("annotation", Annotation(reason="ann's edit")))
    talk.note("compaction", Compaction("manual", "sum", a, last))
    talk.note("compaction", Compaction("manual", "sum", b, last))
    talk.note("compaction", Compaction("tool_results", trimmed=((a, "x"),)))
    copy = talk.add(Draft("user", Message("a")))[0].hash
    talk.note("merge", Merge("other", "h", copies=((a, copy), (b, last))))
    parent = Talk().note("branch_summary", BranchSummary("of ann", "s0"))
    parent.note("branch_summary", BranchSummary("of nobody", "s9"))
    (reason,) = parent.add(Draft("annotation", Annotation(parent.commits[0].hash, reason="good")))
    picked = of_end_user(told(talk, parent), "ann")
    first_turn = ["user", "response", "assistant", "turn_ended"]
    later = ["annotation", "user", "annotation", "compaction", "compaction", "user"]
    assert [*first_turn, *later] == about(talk, picked)
    assert note.hash in picked
    assert ["branch_summary", "annotation"] == about(parent, picked)
    assert reason.hash in picked


def test_a_checkpoint_of_another_line_is_about_nothing_here() -> None:
    """Its run is not in this history."""
    talk = Talk().turn("a", origin=ANN)
    talk.note("compaction", Compaction("manual", "sum", "0" * 64, "1" * 64))
    assert "compaction" not in about(talk, of_end_user(told(talk), "ann"))


def test_old_is_what_came_before() -> None:
    """A late result of an old call goes with its call; tools stay."""
    talk = Talk().tools("look").system().user("a").reply(call()).result().turn("b")
    cut = next(commit for commit in talk.commits if commit.kind == "tool_result")
    picked = before(told(talk), cut.time)
    assert ["system", "user", "response", "tool_call", "tool_result"] == about(talk, picked)


LATER = 10**15


@pytest.mark.parametrize(
    ("order", "erased"),
    [
        (order_for(Selection("ann"), LATER, "purged"), True),
        (order_for(Selection("bob"), LATER, "purged"), False),
        (order_for(Selection("ann"), -1, "purged"), False),
        (order_for(Selection("", LATER), LATER, "purged"), True),
        (order_for(Selection("", -1), LATER, "purged"), False),
        (order_for(Selection("ann", LATER), LATER, "purged"), True),
        (order_for(Selection("bob", LATER), LATER, "purged"), False),
        (order_for(Selection(model=HERE.served_model), LATER, "purged"), True),
        (order_for(Selection("ann", LATER, HERE.served_model), LATER, "purged"), True),
        (order_for(Selection("ann", None, "other"), LATER, "purged"), False),
        (order_for(Selection(model="other"), LATER, "purged"), False),
        (order_for(Selection("", LATER), LATER, "purged", "codex"), True),
        (order_for(Selection("", LATER), LATER, "purged", "codex", "other"), False),
        (order_for(Selection("", LATER), LATER, "purged", "", "zebra"), True),
        (order_for(Selection("", LATER), LATER, "purged", "other", "", ["s"]), True),
        (order_for(Selection("", LATER), LATER, "purged", "other", "", ["t"]), False),
        (Order(LATER, "deleted", sessions=True, within=("s",), program="x"), None),
        (Order(LATER, "deleted", sessions=True, within=("t",), program="x"), False),
        (Order(LATER, "deleted", session="another"), False),
        (Order(1, "deleted", sessions=True), False),
        (Order(LATER, "deleted", session="s"), None),
        (Order(LATER, "deleted", sessions=True), None),
    ],
)
def test_a_step_that_is_stored_later_has_nothing_of_what_was_erased(order: Order, erased: bool | None) -> None:
    """Its hashes stay, nobody finds it by what was said, and of a session that is gone there is none; an order names
    nobody.
    """
    talk = Talk().turn("a", origin=ANN)
    entry = AppendRequest(
        "s",
        "s",
        2,
        "step",
        talk.commits,
        Head(),
        sightings=[Sighting(b"", b"d", "r")],
        about=About("codex", "zebra", "/a"),
    )
    left = late(entry, [order])
    assert entry == late(entry, [Order(LATER, "purged", before=LATER)], began=LATER)
    assert entry != late(entry, [Order(1, "purged", before=LATER)], began=0)

    assert not any(name in str(order) for name in ("ann", "zebra", "codex"))
    if erased is None or left is None:
        assert (None, None) == (erased, left)
    elif not erased:
        assert entry == left
    else:
        assert [commit.hash for commit in talk.commits] == [commit.hash for commit in left.commits]
        assert {"user", "response", "assistant"} <= {c.kind for c in left.commits if isinstance(c.value, Erased)}
        assert all(decode_payload(commit.payload) == commit.value for commit in left.commits)
        assert ([], About()) == (list(left.sightings), left.about)


def test_copies_of_responses_that_were_erased_are_not_stored_again() -> None:
    """What the log, or a sealed value, had of a response may have been erased meanwhile; what was asked for in the step
    itself, what others said, and what the client says, stays.
    """
    talk = Talk()
    talk.user("What is it?").reply(think("Secret."), say("So."))
    talk.user("And now?").reply(think("Thought."), say("Thus."))
    record = Request({"endpoint": "here"}, {}, (), "{}", "", "", "", "", "", "", "")
    talk.note("request", record, "resp2")
    assert {"resp1"} == copied(talk.commits)
    entry = AppendRequest("s", "s", 2, "step", talk.commits, Head())
    left = late(entry, [], {"resp1"})
    assert left is not None
    assert without_copies(entry, {"resp1"}) == left
    payloads = str([commit.payload for commit in left.commits])
    assert [False, True, True] == [word in payloads for word in ("Secret.", "Thought.", "What is it?")]
    assert [commit.hash for commit in talk.commits] == [commit.hash for commit in left.commits]
    assert entry == late(entry, [Order(0, "redacted")], {"resp3"})


def test_a_message_that_lost_words_loses_them_where_it_is_repeated() -> None:
    """In a step that was made before and is stored later; what else is in the step stays, and so does a later one."""
    talk = Talk()
    talk.user("Secret?").reply(think("Hm."), say("Secret."))
    told = [SessionHistory("s", [*talk.commits])]
    erased = {commit.hash for commit in talk.commits if b"Secret" in commit.payload}
    order = Order(LATER, "redacted", messages=echoed(told, erased))
    assert "Secret" not in str(order)
    again = Talk()
    again.user("Secret?").reply(say("Secret.")).user("And now?")
    entry = AppendRequest("t", "t", 2, "step", again.commits, Head())
    left = late(entry, [order])
    assert left is not None
    payloads = str([commit.payload for commit in left.commits])
    assert [False, True] == [word in payloads for word in ("Secret", "And now?")]
    assert entry == late(entry, [msgspec.structs.replace(order, time=0)])
    assert entry == late(entry, [Order(LATER, "redacted")])


NOTHING_LEFT: list[Payload] = [
    Message("a"),
    Text("a"),
    ThinkingBlock("a"),
    ToolCall("c", "n", "{}"),
    ToolResult("c", "a"),
    Media("image/png", "AAAA"),
    Unknown("{}"),
    Content("note", "a"),
    BranchSummary("a"),
    Erased("asked", 1),
]


@pytest.mark.parametrize("value", NOTHING_LEFT)
def test_of_what_was_said_nothing_is_left(value: Payload) -> None:
    """Whoever said it."""
    assert skeleton(value) is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (
            Response(ANN, "id", "stop", message="{}", envelope="{}", error=Failure("ann"), blocks=2, outcome="failed"),
            Response(HERE, "", "stop", blocks=2, outcome="failed"),
        ),
        (RECORD, msgspec.structs.replace(RECORD, params="{}")),
        (Repair("block", ("b",), "ann", "e", "m"), Repair("block", ("b",), "", "e", "m")),
        (TurnEnded("failed", "ann"), TurnEnded("failed")),
        (
            PermissionDecision("c", "go", "denied", "person", "runs", "why", "ann"),
            PermissionDecision("c", "go", "denied", "person", "runs"),
        ),
        (Annotation("h", Priority.SKIP, tags=("ann",), message="ann"), Annotation("h", Priority.SKIP)),
        (
            Compaction("manual", "ann", "f", "l", ("k",), model="m", usage=Usage(1), before=9, after=1, note="ann"),
            Compaction("manual", model="m", usage=Usage(1), before=9, after=1),
        ),
        (Tools((Tool("look"),)), Tools((Tool("look"),))),
        (Usage(1, 2), Usage(1, 2)),
        (Merge("b", "h"), Merge("b", "h")),
    ],
)
def test_what_the_log_needs_is_left(value: Payload, expected: Payload) -> None:
    """Who answered, how it ended, what it cost, what holds; no words."""
    assert expected == skeleton(value)


def test_what_says_nothing_is_left_alone() -> None:
    """So is what was not picked, and what has been erased already."""
    talk = Talk().user("a").reply(say("x"), usage=Usage(1)).end()
    gone = msgspec.structs.replace(talk.commits[0], value=tombstone("asked", 1))
    rest = msgspec.structs.replace(talk.commits[1], value=tombstone("asked", 1, skeleton(talk.commits[1].value)))
    commits: list[Commit] = [gone, rest, *talk.commits[2:]]
    picked = {commit.hash for commit in commits}
    assert {talk.commits[2].hash: None} == bare(commits, picked)
    assert {} == bare(commits, set())


def test_what_an_export_left_out_is_erased_too() -> None:
    """Else a whole export would bring it back; of what is erased already nothing more is."""
    talk = Talk().user("a").reply(say("x"), usage=Usage(1)).end()
    response = talk.commits[1].value
    gone = msgspec.structs.replace(talk.commits[0], value=tombstone(LEFT_OUT, 1))
    rest = msgspec.structs.replace(talk.commits[1], value=tombstone(LEFT_OUT, 1, skeleton(response)))
    assert {gone.hash: None, rest.hash: skeleton(response)} == bare([gone, rest], {gone.hash, rest.hash})


def test_a_tombstone_holds_what_is_left() -> None:
    """As a payload's source, half characters too."""
    stone = tombstone("asked", 7, Message("a \ud83d"))
    assert ("asked", 7, Message("a \ud83d")) == (stone.reason, stone.time, surviving(stone))
    assert Erased("asked", 7) == tombstone("asked", 7) == surviving(tombstone("asked", 7))
    assert stone == decode_payload(canonical.encode(stone))


def test_carriers_are_nowhere_in_what_is_left() -> None:
    """Of any payload that may hold one."""
    held = (Carrier("encrypted", "OPAQUE"),)
    for value in (Text("a", carriers=held), ThinkingBlock("", signature="OPAQUE"), Unknown("OPAQUE", held)):
        assert skeleton(value) is None
