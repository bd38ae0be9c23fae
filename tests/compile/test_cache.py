"""Cache-friendly by default, for every rule row that ships: bytes once sent are sent again."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from tests.compile.build import (
    GEMINI,
    URL,
    Built,
    Talk,
    build,
    call,
    entry,
    inputs,
    origin,
    rule,
    say,
    settings,
    tagged,
    target,
    think,
    thought,
)
from tests.every import every
from thinkback.compile import fold
from thinkback.compile.policy import Policy, ResponseContext
from thinkback.model.blocks import Block, Carrier, ThinkingBlock
from thinkback.model.rule import Rule
from thinkback.model.target import Settings, Target, merge
from thinkback.rules import load_rulebook
from thinkback.wire.openai_chat import write

BOOK = load_rulebook()
SPEAKS = {place.id: place.dialect for place in BOOK.endpoints()}
ROWS = {row.id: row for row in BOOK.rules()}
ALL = sorted(ROWS)
CALL = (
    '{"id":"c1","type":"function","function":{"name":"look","arguments":"{}"},'
    '"extra_content":{"google":{"thought_signature":"needed"}}}'
)


def speech(row: Rule) -> str:
    """The dialect that a row is about."""
    return row.dialect or SPEAKS[row.endpoint]


def place(row: Rule, **fields: Any) -> Target:
    """A target under a row, in its dialect."""
    return target(row, speech(row), **fields)


def native_thought(row: Rule) -> Callable[[str], ThinkingBlock]:
    """How a response of a native dialect brings its reasoning."""
    signed = speech(row) not in ("cohere", "ollama")

    def brings(text: str) -> ThinkingBlock:
        return thought(speech(row), text, f"sig of {text}" if signed else "", f"rs of {text}")

    return brings


def received(row: Rule) -> Callable[[str], ThinkingBlock]:
    """How a response of an endpoint under ``row`` brings its reasoning."""
    if speech(row) != "openai-chat":
        return native_thought(row)
    if row.form == "native":
        return tagged
    if row.form == "details":
        return lambda text: entry(text, format="openai-responses-v1", signature=f"sig of {text}")
    return tagged if row.form == "tags" else think


def thinking(row: Rule) -> dict[str, Any]:
    """Parameters of a request that thinks."""
    nested: dict[str, Any] = {}
    for path, value in dict(row.thinks_when[0]).items() if row.thinks_when else ():
        nested = merge(nested, functools.reduce(lambda inner, key: {key: inner}, path.split(".")[::-1], value))
    return nested


def requests(row: Rule, wanted: Settings, *, tools: bool) -> Iterator[tuple[int, Built]]:
    """(number of the turn, request) of a conversation, in the order they are made."""
    brings = received(row)
    talk = Talk(origin(speech(row))).system()

    def request() -> Built:
        return build(talk, place(row), wanted, tools=tools)

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
    places = [ResponseContext(False, tools, False, True, has_calls) for has_calls in (True, False)]
    return all(not policy.stance(place).against for place in places)


def last_question(raw: list[bytes]) -> int:
    """The index of the last user message."""
    return max(at for at, message in enumerate(raw) if b"question " in message)


@pytest.mark.covers(False)
@every("tools", [True, False])
@every("id", ALL)
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
            assert equal >= (last_question(before) + 1 if crossed else len(before)), id
        last = turn, built


@pytest.mark.covers(False)
@every("id", [id for id in ALL if ROWS[id].form != "none"])
def test_asking_for_everything_keeps_the_bytes(id: str) -> None:
    """Where a person asks for the reasoning of finished turns, it stays, unless the endpoint must not see it."""
    row = ROWS[id]
    asked = settings(include_in_context=True)
    for (_, before), (_, now) in pairwise(requests(row, asked, tools=True)):
        if row.later != "never":
            assert before.raw == now.raw[: len(before.raw)]


@every("id", ALL)
def test_a_body_begins_with_the_body_before(id: str) -> None:
    """The body begins with the message array, so that a longer one begins with the bytes of a shorter one."""
    row = ROWS[id]
    talk = Talk().user("a").user("b")
    short = build(talk, place(row))
    long = build(talk.user("c"), place(row))
    assert long.body.startswith(short.body[: -len(short.end)])


@every("id", [id for id in ALL if "must" in (ROWS[id].open_turn, ROWS[id].later)])
def test_required_reasoning_survives_every_setting(id: str) -> None:
    """Where a shipped row requires the reasoning of the turn under way, no setting keeps it away."""
    row = ROWS[id]
    reply: list[Block] = [received(row)("needed"), call()]
    if row.signed_calls:  # there it is the call that carries it
        reply = [call(carriers=(Carrier("thought_signature", "needed"),), wire=CALL if speech(row) != GEMINI else "")]
    talk = Talk(origin(speech(row))).user("a").reply(*reply, content="null").result()
    for wanted in (settings(include_in_context=False), settings(strip_from_context="all"), settings(enabled=False)):
        assert b"needed" in build(talk, place(row), wanted, params=thinking(row)).body


@every("id", ALL)
def test_reasoning_of_others_is_not_sent(id: str) -> None:
    """Under every shipped row reasoning minted elsewhere stays away, opaque values and all; calls and text stay."""
    row = ROWS[id]
    block = msgspec.structs.replace(received(row)("secret thought"), signature="opaque value")
    talk = Talk(origin(speech(row))).user("a").reply(block, call(), say("text")).result().end().user("b")
    guard = msgspec.structs.replace(row.guard, hosts=())
    body = build(
        talk, place(msgspec.structs.replace(row, guard=guard), base_url="https://else.example"), tools=True
    ).body
    assert b"secret" not in body
    assert b"opaque" not in body
    assert b"text" in body


@every("id", [id for id in ALL if ROWS[id].keep_switch])
def test_retention_is_switched_on_where_it_is_used(id: str) -> None:
    """A shipped row's own switch goes along where reasoning of finished turns does, and not where it does not."""
    row = ROWS[id]
    assert row.keep_switch is not None
    talk = Talk(origin(speech(row))).turn("a", received(row)("t"), say("x")).user("b")
    for wanted in (Settings(), settings(include_in_context=True), settings(strip_from_context="all")):
        built = build(talk, place(row), wanted, params=thinking(row))
        sent = any(decision.message >= 0 for decision in built.decisions)
        drops = row.drop_switch.params if row.drop_switch else {}
        keeps = row.keep_switch.params if not row.keep_switch.asked or wanted.include_in_context else {}
        off = row.server_state.off if row.server_state else {}
        assert built.params == {**(keeps if sent else drops), **off}


@every("id", ALL)
def test_decisions_name_the_row(id: str) -> None:
    """Every decision names the shipped row it was made by."""
    row = ROWS[id]
    talk = Talk(origin(speech(row))).turn("a", received(row)("t"), say("x")).user("b")
    assert {decision.rule for decision in build(talk, place(row)).decisions} == {id}


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
