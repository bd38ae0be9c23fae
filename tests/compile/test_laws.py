"""Laws of the fold, for any conversation, any cut of it, any rule and settings."""

from __future__ import annotations

import hashlib
import re
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.compile.build import (
    ELSEWHERE,
    HERE,
    UNKNOWN,
    Built,
    Talk,
    call,
    entry,
    inputs,
    rule,
    say,
    settings,
    signed_call,
    tagged,
    target,
    think,
    writer_of,
)
from tests.compile.curating import content, curated, named, told_of
from thinkback.compile import fold
from thinkback.compile.policy import Inputs
from thinkback.errors import ContextRefused, ReplayRefused
from thinkback.model import canonical
from thinkback.model.blocks import Block, Carrier, ThinkingBlock, ToolCall, Unknown, carriers_of
from thinkback.model.commits import Commit, Response, Usage
from thinkback.model.rule import Guard, Switch
from thinkback.model.target import Settings
from thinkback.rules import load_rulebook

UNSTRIPPED: Any = {"strip_from_context": "none", "keep_last": None, "context_size": None}
REFUSALS = (ReplayRefused, ContextRefused)
OPAQUE = re.compile(rb"OPQ\d")
SWITCH = Switch({"keep": 1})
BOOK = load_rulebook()
CHAT = {"*", *(place.id for place in BOOK.endpoints() if place.dialect == "openai-chat")}
SHIPPED = [row for row in BOOK.rules() if row.endpoint in CHAT and row.form != "native"]

values = st.sampled_from([f"OPQ{number}" for number in range(6)])
texts = st.sampled_from(["", " ", "a", "thought\n", "\ud800", 'quo"te'])
fields = st.sampled_from(["reasoning", "reasoning_content"])
flags: Any = st.sampled_from([{}, {}, {"marker": True}, {"is_hidden": True}, {"kind": "summary"}])


ids = st.sampled_from(["c1", "c2", ""])
thoughts: st.SearchStrategy[Block] = st.one_of(
    st.builds(
        lambda text, field, more: think(text, field, **more),
        texts,
        st.sampled_from(["reasoning", "reasoning_content"]),
        flags,
    ),
    st.builds(lambda text, more: tagged(text, **more), texts, flags),
    st.builds(lambda text, value, more: entry(text, signature=value, **more), texts, values, flags),
    st.builds(lambda value: entry(data=value), values),
    st.builds(lambda text, value: think(text, signature=value), texts, values),
)
others: st.SearchStrategy[Block] = st.one_of(
    st.builds(say, texts),
    st.builds(call, ids),
    st.builds(signed_call, ids, values),
    st.builds(lambda value: Unknown(f'{{"id":"{value}"}}', carriers=(Carrier("item_id", value),)), values),
)
usages = st.one_of(
    st.none(), st.builds(Usage, st.just(1), st.integers(0, 900), st.one_of(st.none(), st.integers(0, 900)))
)
states: Any = st.sampled_from(["completed", "completed", "failed", "interrupted", "capped"])
stages: Any = st.sampled_from(["restore", "server_drop", "block", "older_turns", "all"])


@st.composite
def talks(
    draw: st.DrawFn,
    repairs: bool = True,
    blocks: st.SearchStrategy[Block] = thoughts | others,
    curation: bool = False,
    start: int = 0,
) -> Talk:
    """A conversation of any shape, also of shapes that no turn of ours leaves behind; with ``curation`` half of them
    are curated.
    """
    talk = Talk(start=start)
    ops = ["user", "user", "reply", "reply", "reply", "result", "end", "end", "system", "usage", "tools"]
    if repairs:
        ops.append("repair")
    if curation and draw(st.booleans()):
        ops += ["curate"] * 3
    for op in draw(st.lists(st.sampled_from(ops), max_size=24)):
        if op == "curate":
            curated(draw, talk)
        elif op == "user":
            talk.user(draw(texts))
        elif op == "system":
            talk.system(draw(texts))
        elif op == "reply":
            origin = draw(st.sampled_from([HERE, HERE, HERE, ELSEWHERE, UNKNOWN]))
            header: Any = draw(st.sampled_from([{}, {}, {}, {"complete": False}, {"repeats": ("reasoning",)}]))
            talk.reply(*draw(st.lists(blocks, max_size=4)), origin=origin, usage=draw(usages), **header)
        elif op == "result":
            talk.result(draw(ids), "r", draw(st.sampled_from(["last", "resp1", "resp2", "", "gone"])))
        elif op == "end":
            talk.end(draw(states))
        elif op == "usage":
            talk.note("provider_usage", Usage(1, 300, 200), draw(st.sampled_from(["resp1", "resp2", "gone"])))
        elif op == "tools":
            talk.tools("look")
        else:
            hashes = talk.hashes() + talk.hashes("tool_call")
            named = draw(st.lists(st.sampled_from(hashes), max_size=3)) if hashes else []
            talk.repair(draw(stages), *named, model=draw(st.sampled_from(["m1", "m2"])))
    return talk


demands: Any = st.sampled_from(["must", "should", "may", "never"])
rows = st.one_of(
    st.sampled_from(SHIPPED),
    st.builds(
        lambda form, field, open_turn, later, missing, on, more: rule(
            form=form,
            field=field,
            open_turn=open_turn,
            later=later,
            missing=missing,
            placeholder="PLACE",
            placeholder_on=on,
            thinking_off={"off": True},
            need_signature=("anthropic-claude-v1",),
            repeat_text=("anthropic-claude-v1",),
            guard=Guard(account=True),
            **more,
        ),
        st.sampled_from(["field", "tags", "details", "none"]),
        st.sampled_from(["reasoning_content", "reasoning", ""]),
        demands,
        st.one_of(demands, st.just("must-after-tools")),
        st.sampled_from([(), ("placeholder",), ("none",), ("thinking-off-for-this-turn",)]),
        st.sampled_from(["never", "tool-calls", "with-tools", "all"]),
        st.sampled_from(
            [
                {},
                {"scope": "tool-calls"},
                {"as_received": True},
                {"empty_details": True},
                {"keep_switch": Switch({"k": 1})},
            ]
        ),
    ),
)
wishes = st.builds(
    lambda fields: settings(**fields),
    st.fixed_dictionaries(
        {},
        optional={
            "include_in_context": st.booleans(),
            "enabled": st.booleans(),
            "strip_from_context": st.sampled_from(["all", "allButLast", "none"]),
            "keep_last": st.integers(0, 4),
            "carry": st.booleans(),
            "foreign": st.sampled_from(["drop", "summary", "text"]),
            "context_size": st.integers(1, 3),
        },
    ),
)
wants = st.builds(lambda row, wanted, tools: inputs(target(row), wanted, tools=tools), rows, wishes, st.booleans())


class Outcome(NamedTuple):
    """Everything that a request says, or why there is none."""

    body: bytes
    decisions: list[Any]
    counts: Any
    digests: Any
    params: Any
    refused: str = ""


def outcome(wanted: Inputs, commits: list[Commit]) -> Outcome:
    """What folding from empty gives."""
    try:
        return told(Built(fold.fold(wanted, commits, writer_of(wanted))))
    except REFUSALS as error:
        return Outcome(b"", [], None, None, None, error.message)


def told(built: Built) -> Outcome:
    """What a request says."""
    return Outcome(built.body, built.decisions, built.counts, built.digests(), built.params)


def stepped(wanted: Inputs, commits: list[Commit], cuts: list[int]) -> Outcome:
    """What taking the commits in step by step gives; what a step refuses is taken in with the next one."""
    state = fold.empty(wanted)
    waiting: list[Commit] = []
    result = Outcome(b"", [], None, None, None, "nothing was built")
    places = sorted({0, len(commits), *(min(cut, len(commits)) for cut in cuts)})
    for start, end in zip([0, *places], places, strict=False):
        waiting += commits[start:end]
        try:
            state, waiting = fold.extend(state, waiting, writer_of(wanted)), []
            result = told(Built(state))
        except REFUSALS as error:
            result = Outcome(b"", [], None, None, None, error.message)
    return result


@pytest.mark.covers(True)
@given(talks(curation=True), wants, st.lists(st.integers(0, 60), max_size=12))
def test_extending_step_by_step_is_folding_from_empty(talk: Talk, wanted: Inputs, cuts: list[int]) -> None:
    """Bytes, decisions, counts, digests and parameters are the same at any cut, repairs and late commits included."""
    assert outcome(wanted, talk.commits) == stepped(wanted, talk.commits, cuts)


@given(talks(curation=True), talks(curation=True, start=1000), wants, st.integers(0, 60))
def test_a_state_is_not_changed_by_extending_it(talk: Talk, other: Talk, wanted: Inputs, cut: int) -> None:
    """A state says the same after a newer one was made of it, and may be extended in another direction."""
    head, tail = talk.commits[:cut], talk.commits[cut:]
    try:
        old = fold.fold(wanted, head, writer_of(wanted))
        before = told(Built(old))
        told(Built(fold.extend(old, tail, writer_of(wanted))))
        branch = told(Built(fold.extend(old, other.commits, writer_of(wanted))))
        again = told(Built(fold.extend(old, tail, writer_of(wanted))))
    except REFUSALS:
        assume(False)
        raise
    assert before == told(Built(old)) == outcome(wanted, head)
    assert branch == outcome(wanted, [*head, *other.commits])
    assert again == outcome(wanted, talk.commits)


@given(talks(curation=True), wants)
def test_opaque_values_are_neither_invented_nor_repeated(talk: Talk, wanted: Inputs) -> None:
    """Every opaque value in a body is one of the log, minted here, and stands there once."""
    found = OPAQUE.findall(outcome(wanted, talk.commits).body)
    values = [(commit.response, commit.value) for commit in talk.commits]
    here = {response for response, value in values if isinstance(value, Response) and value.origin == HERE}
    known = {
        carrier.value.encode()
        for response, value in values
        if response in here and isinstance(value, ThinkingBlock | ToolCall | Unknown)
        for carrier in carriers_of(value)
    }
    assert len(found) == len(set(found))
    assert set(found) <= known


@pytest.mark.covers(True)
@given(talks(curation=True), wants)
def test_every_carrier_and_text_has_one_decision(talk: Talk, wanted: Inputs) -> None:
    """Each carrier of the log, and each reasoning text, is told of exactly once; the rest are stand-ins."""
    result = outcome(wanted, talk.commits)
    assume(not result.refused)
    assert told_of(talk) == named(talk, result.decisions)
    assert {decision.rule for decision in result.decisions} <= {wanted.target.rule.id}


@given(talks(curation=True), wants)
def test_decisions_point_at_their_messages(talk: Talk, wanted: Inputs) -> None:
    """What a decision says goes out stands in the message at its index; what is dropped has no index."""
    result = outcome(wanted, talk.commits)
    assume(not result.refused)
    messages = Built(fold.fold(wanted, talk.commits, writer_of(wanted))).raw
    blocks = {commit.hash: content(talk, commit) for commit in talk.commits}
    for decision in result.decisions:
        assert (decision.message == -1) is (decision.action == "drop")
        if decision.action == "drop":
            continue
        message = messages[decision.message]
        assert message.startswith(b'{"role":"assistant"')
        block: Any = blocks.get(decision.block)
        if decision.action == "placeholder":
            assert b"reasoning" in message
        elif decision.what == "reasoning":
            assert canonical.string(block.thought)[1:-1] in message
        else:
            assert any(carrier.value.encode() in message for carrier in carriers_of(block))


@given(talks(curation=True), wants)
def test_the_digest_of_what_is_sent(talk: Talk, wanted: Inputs) -> None:
    """``sent`` is the SHA-256 of the body, whether the last part is empty or not."""
    result = outcome(wanted, talk.commits)
    assume(not result.refused)
    assert result.digests.sent == hashlib.sha256(result.body).hexdigest()


@given(
    talks(repairs=False, curation=True, blocks=st.one_of(thoughts, st.builds(say, texts), st.builds(call, ids))),
    wants,
    wishes,
)
def test_the_digest_of_messages_does_not_know_of_reasoning(talk: Talk, wanted: Inputs, wish: Settings) -> None:
    """The message chain has the same digest whatever reasoning goes along, and so have system and tools.

    Reasoning that is told as prose is text like any other, so none is told here.
    """
    size = wanted.settings.context_size
    one, other = (
        outcome(
            msgspec.structs.replace(wanted, settings=msgspec.structs.replace(each, foreign="drop", context_size=size)),
            talk.commits,
        )
        for each in (wanted.settings, wish)
    )
    assume(not one.refused and not other.refused)
    assert [getattr(one.digests, name) for name in ("messages", "system", "tools")] == [
        getattr(other.digests, name) for name in ("messages", "system", "tools")
    ]


@given(talks(curation=True), wants, wishes)
def test_counts_hold_together(talk: Talk, wanted: Inputs, wish: Settings) -> None:
    """What is stored does not depend on the settings; counts are never negative, and reasoning is a part of them."""
    one = outcome(wanted, talk.commits)
    other = outcome(msgspec.structs.replace(wanted, settings=wish), talk.commits)
    assume(not one.refused and not other.refused)
    assert one.counts.raw == other.counts.raw
    assert 0 <= one.counts.effective_reasoning <= one.counts.effective + 1
    assert one.counts.raw >= 0


@given(talks(curation=True), wants)
def test_messages_alternate_as_endpoints_want(talk: Talk, wanted: Inputs) -> None:
    """Every call is answered right behind its message, and every answer has its call."""
    try:
        messages = Built(fold.fold(wanted, talk.commits, writer_of(wanted))).messages
    except REFUSALS:
        return
    open_calls: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] == open_calls.pop(0)
        else:
            assert open_calls == []
            open_calls = [each["id"] for each in message.get("tool_calls", ())]
    assert open_calls == []


@given(talks(curation=True), wants, st.lists(st.sampled_from(["turn", "loop", "system"]), min_size=1, max_size=4))
def test_what_follows_is_added_behind(talk: Talk, wanted: Inputs, more: list[str]) -> None:
    """On endpoints that keep earlier turns the bytes of a request begin with those of the last, curated or not."""
    keeps = rule(open_turn="should", later="should", guard=Guard(account=True))
    wanted = inputs(target(keeps), msgspec.structs.replace(wanted.settings, **UNSTRIPPED))
    talk.user("next")
    last = outcome(wanted, talk.commits)
    for op in more:
        if op == "turn":
            talk.reply(think("t"), say("x")).end().user("next")
        elif op == "loop":
            talk.reply(think("t"), call("c7"), content="null").result("c7")
        else:
            talk.system("more")
        now = outcome(wanted, talk.commits)
        assume(not last.refused)
        assert now.body.startswith(last.body[: last.body.rindex(b"]")])
        last = now
