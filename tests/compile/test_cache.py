"""Cache-friendly by default (DESIGN 3.9), for every rule row that ships: bytes once sent are sent again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from tests.compile.build import URL, Built, Talk, build, call, entry, inputs, rule, say, settings, tagged, target, think
from thinkback.compile import fold
from thinkback.compile.policy import Policy
from thinkback.model.blocks import ThinkingBlock
from thinkback.model.rule import Rule
from thinkback.model.target import Settings
from thinkback.rules import load_rulebook
from thinkback.wire.openai_chat import write

BOOK = load_rulebook()
CHAT = {"*", *(place.id for place in BOOK.endpoints() if place.dialect == "openai-chat")}
ROWS = {row.id: row for row in BOOK.rules() if row.endpoint in CHAT and row.form != "native"}
ALL = sorted(ROWS)


def received(row: Rule) -> Callable[[str], ThinkingBlock]:
    """How a response of an endpoint under ``row`` brings its reasoning."""
    if row.form == "details":
        return lambda text: entry(text, format="openai-responses-v1", signature=f"sig of {text}")
    return tagged if row.form == "tags" else think


def requests(row: Rule, wanted: Settings, *, tools: bool) -> Iterator[tuple[int, Built]]:
    """(number of the turn, request) of a conversation, in the order they are made."""
    brings = received(row)
    talk = Talk().system()

    def request() -> Built:
        return build(talk, row, wanted, tools=tools)

    for turn in range(3):
        talk.user(f"question {turn}")
        yield turn, request()
        for step in range(2 if tools else 0):
            id = f"c{turn}{step}"
            talk.reply(brings(f"step {turn}.{step}"), call(id), content="null").result(id)
            yield turn, request()
        talk.reply(brings(f"end {turn}"), say(f"answer {turn}")).end()
    talk.user("last")
    yield 3, request()


def keeps_earlier(policy: Policy, tools: bool) -> bool:
    """Whether the rule keeps the reasoning of finished turns of this conversation."""
    place = (False, tools, False, True, False)
    return all(not policy.stance((*place[:4], has_calls)).against for has_calls in (True, False))


@pytest.mark.parametrize("tools", [True, False], ids=["tools", "plain"])
@pytest.mark.parametrize("id", ALL)
def test_the_next_request_begins_with_the_last(id: str, tools: bool) -> None:
    """On endpoints that keep earlier turns every message goes out again, byte for byte, with what follows behind it.

    Where only the turn under way counts, they are equal up to the first step of the turn that just ended.
    """
    row = ROWS[id]
    last: tuple[int, Built] | None = None
    for turn, built in requests(row, Settings(), tools=tools):
        if last is not None:
            before, now = last[1].raw, built.raw
            crossed = turn != last[0] and not keeps_earlier(built.state.policy, tools)
            equal = next(
                (at for at, pair in enumerate(zip(before, now, strict=False)) if pair[0] != pair[1]), len(before)
            )
            last_user = max(at for at, message in enumerate(last[1].messages) if message["role"] == "user")
            assert equal >= (last_user + 1 if crossed else len(before)), id
        last = turn, built


@pytest.mark.parametrize("id", [id for id in ALL if ROWS[id].form != "none"])
def test_asking_for_everything_keeps_the_bytes(id: str) -> None:
    """Where a person asks for the reasoning of finished turns, it stays, unless the endpoint must not see it."""
    row = ROWS[id]
    asked = settings(include_in_context=True)
    for (_, before), (_, now) in pairwise(requests(row, asked, tools=True)):
        if row.later != "never":
            assert before.raw == now.raw[: len(before.raw)]


@pytest.mark.parametrize("id", ALL)
def test_a_body_begins_with_the_body_before(id: str) -> None:
    """The body begins with the message array, so that a longer one begins with the bytes of a shorter one."""
    row = ROWS[id]
    talk = Talk().user("a").user("b")
    short = build(talk, row)
    long = build(talk.user("c"), row)
    assert long.body.startswith(short.body[: -len(short.end)])


@pytest.mark.parametrize("id", [id for id in ALL if "must" in (ROWS[id].open_turn, ROWS[id].later)])
def test_required_reasoning_survives_every_setting(id: str) -> None:
    """Where a shipped row requires the reasoning of the turn under way, no setting keeps it away."""
    row = ROWS[id]
    params = dict(msgspec.structs.asdict(row)["thinks_when"][0]) if row.thinks_when else {}
    nested: dict[str, Any] = {}
    for path, value in params.items():
        first, _, second = path.partition(".")
        nested[first] = {second: value} if second else value
    talk = Talk().user("a").reply(received(row)("needed"), call(), content="null").result()
    for wanted in (settings(include_in_context=False), settings(strip_from_context="all"), settings(enabled=False)):
        assert b"needed" in build(talk, row, wanted, params=nested).body


@pytest.mark.parametrize("id", ALL)
def test_reasoning_of_others_is_not_sent(id: str) -> None:
    """Under every shipped row reasoning minted elsewhere stays away, opaque values and all; calls and text stay."""
    row = ROWS[id]
    block = msgspec.structs.replace(received(row)("secret thought"), signature="opaque value")
    talk = Talk().user("a").reply(block, call(), say("text")).result().end().user("b")
    body = build(talk, target(row, base_url="https://else.example"), tools=True).body
    assert b"secret" not in body
    assert b"opaque" not in body
    assert b"text" in body


@pytest.mark.parametrize("id", [id for id in ALL if ROWS[id].keep_switch])
def test_retention_is_switched_on_where_it_is_used(id: str) -> None:
    """A shipped row's own switch goes along where reasoning of finished turns does, and not where it does not."""
    row = ROWS[id]
    assert row.keep_switch is not None
    talk = Talk().turn("a").user("b")
    for wanted in (Settings(), settings(include_in_context=True), settings(strip_from_context="all")):
        built = build(talk, row, wanted)
        sent = any(decision.message >= 0 for decision in built.decisions)
        assert built.params == (row.keep_switch.params if sent else {})


@pytest.mark.parametrize("id", ALL)
def test_decisions_name_the_row(id: str) -> None:
    """Every decision names the shipped row it was made by."""
    talk = Talk().turn("a", received(ROWS[id])("t"), say("x")).user("b")
    assert {decision.rule for decision in build(talk, ROWS[id]).decisions} == {id}


def test_settings_that_break_the_cache_are_allowed() -> None:
    """Stripping changes bytes that were sent; it is done, and the decision says what it costs."""
    talk = Talk().loop("a")
    before = build(talk, None, settings(keep_last=0))
    talk.reply(think("end"), say("x")).end().user("b")
    now = build(talk, None, settings(keep_last=0))
    assert before.raw[1] != now.raw[1]
    assert now.reasons[0].endswith("so a prompt cache ends at this message")


def test_the_writer_puts_messages_first() -> None:
    """The body is the start, the messages with separators between them, and the end."""
    built = Built(fold.fold(inputs(rule()), Talk().turn("a").user("b").commits, write))
    assert built.body == write.start + write.separator.join(built.raw) + built.end
    assert built.state.inputs.target.base_url == URL
