"""Laws of the fold for dialects that take reasoning back in its place: any conversation, cut and row that ships."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
from hypothesis import assume, example, given
from hypothesis import strategies as st

from tests.compile.build import (
    ANTHROPIC,
    BEDROCK,
    GEMINI,
    INTERACTIONS,
    MISTRAL,
    RESPONSES,
    Built,
    Talk,
    call,
    inputs,
    native,
    origin,
    redacted,
    say,
    settings,
    signed_call,
    target,
    think,
    thought,
    tied,
    writer_of,
)
from tests.compile.curating import content, curated, named, stored, told_of
from tests.compile.test_laws import OPAQUE, REFUSALS, Outcome, outcome, states, stepped, told, usages, wishes
from thinkback.compile import fold
from thinkback.compile.policy import Inputs
from thinkback.model import canonical
from thinkback.model.blocks import Block, Carrier, Media, Text, ThinkingBlock, Unknown, carriers_of
from thinkback.model.commits import Request, Response, Usage
from thinkback.model.rule import Guard, Rule, ServerState
from thinkback.rules import load_rulebook

BOOK = load_rulebook()
SPEAKS = {place.id: place.dialect for place in BOOK.endpoints()}
NATIVE = {"openai-chat", ANTHROPIC, BEDROCK, GEMINI, INTERACTIONS, RESPONSES, MISTRAL, "cohere", "ollama"}
ROWS = [(row.dialect or SPEAKS[row.endpoint], row) for row in BOOK.rules() if row.form == "native"]

values = st.sampled_from([f"OPQ{number}" for number in range(6)])
texts = st.sampled_from(["", " ", "a", "thought\n", "\ud800", 'quo"te'])
unlike = st.integers(0, 999).map("thought {:03}".format)
ids = st.sampled_from([f"rs_{number}" for number in range(6)])
names = st.sampled_from(["c1", "c2", ""])
stages: Any = st.sampled_from(["restore", "server_drop", "server_state", "block", "older_turns", "all"])


def thoughts(speech: str, said: st.SearchStrategy[str]) -> st.SearchStrategy[ThinkingBlock]:
    """Reasoning that says one of ``said``, signed or not."""
    unsigned = speech in ("cohere", "ollama", "openai-chat")
    signature = st.just("") if unsigned else st.one_of(st.just(""), values)
    field = {"source_field": "content"} if speech == "openai-chat" else {}
    return st.builds(lambda text, value: thought(speech, text, value, **field), said, signature)


def blocks(speech: str) -> st.SearchStrategy[Block]:
    """Blocks as responses of a dialect bring them, and some they should not."""
    signed = st.builds(lambda value: (Carrier("thought_signature", value),), values)
    found: list[st.SearchStrategy[Any]] = [
        thoughts(speech, texts),
        st.builds(lambda text: thought(speech, text, marker=True), texts),
        st.builds(say, texts),
        st.builds(call, names),
    ]
    if speech != "ollama":  # it has no items
        odd = st.builds(
            lambda value: Unknown(f'{{"type":"odd","of":"{value}"}}', (Carrier("encrypted", value),)), values
        )
        found += [odd, st.just(Unknown('{"type":"odd"}'))]
    match speech:
        case "openai-responses":
            found += [
                st.builds(lambda text, value, id: thought(speech, text, value, id), texts, values, ids),
                st.builds(lambda text, id: tied(say(text), id, Carrier("phase", "final")), texts.filter(bool), ids),
                st.builds(lambda name, id: tied(call(name), id), names, ids),
            ]
        case "gemini":
            found += [
                st.builds(lambda name, carriers: call(name, carriers=carriers), names, signed),
                st.builds(lambda text, carriers: msgspec.structs.replace(say(text), carriers=carriers), texts, signed),
                st.builds(lambda carriers: Media("image/png", data="AAAA", carriers=carriers), signed),
            ]
        case "gemini-interactions":
            found.append(st.builds(lambda name, v: call(name, carriers=(Carrier("signature", v),)), names, values))
        case "anthropic":
            found.append(st.builds(redacted, values))
        case "openai-chat":
            found += [
                st.builds(signed_call, names, values),
                st.builds(lambda text, carriers: msgspec.structs.replace(say(text), carriers=carriers), texts, signed),
            ]
        case "bedrock":
            found.append(st.builds(lambda value: redacted(value, "redactedContent"), values))
    return st.one_of(found)


def once_signed(said: list[Block], speech: str) -> list[Block]:
    """A chat message has one place for the signature of its text, so that no reader finds a second one."""
    signed = [at for at, block in enumerate(said) if isinstance(block, Text) and block.carriers]
    spare = signed[:-1] if speech == "openai-chat" else []
    return [msgspec.structs.replace(block, carriers=()) if at in spare else block for at, block in enumerate(said)]


def rows(speech: str) -> st.SearchStrategy[Rule]:
    """Rows of a dialect that ship, and others."""
    shipped = [row for speaks, row in ROWS if speaks == speech]
    made: st.SearchStrategy[Rule] = st.builds(
        lambda open_turn, later, missing, more: native(
            open_turn=open_turn,
            later=later,
            missing=missing,
            need_signature=("*",),
            thinking_off={"off": True},
            guard=Guard(account=True),
            **more,
        ),
        st.sampled_from(["must", "should", "may", "never"]),
        st.sampled_from(["must", "must-after-tools", "must-with-tools", "should", "may", "never"]),
        st.sampled_from([(), ("none",), ("thinking-off-for-this-turn",)]),
        st.fixed_dictionaries(
            {},
            optional={
                "follower": st.booleans(),
                "tied": st.booleans(),
                "calls_last": st.booleans(),
                "prefix_bound": st.booleans(),
                "server_state": st.just(ServerState("previous", {"store": True}, {"store": False})),
                "system": st.sampled_from(["top", "late", "inline"]),
            },
        ),
    )
    return st.one_of(st.sampled_from(shipped), made) if shipped else made


class Case(NamedTuple):
    """A conversation and what is to be built of it."""

    talk: Talk
    wanted: Inputs


def record(wanted: Inputs, talk: Talk, right: bool) -> Request:
    """The record of the next request, as far as compile reads it; one that is not ``right`` was made elsewhere."""
    made = outcome(wanted, talk.commits)
    digest = made.digests.messages if right and not made.refused else "other"
    kept = {"session.serverState": "true"}
    return Request({}, kept, (), "", "", wanted.prefix[0], wanted.prefix[1], digest, "", "", "")


@st.composite
def cases(
    draw: st.DrawFn, speech: str | None = None, repairs: bool = True, start: int = 0, thinks: bool = False
) -> Case:
    """A conversation of any shape with a model of a dialect, its requests on record or not, curated or not.

    With ``thinks`` it has an answer, and each answer begins with a thought that hardly another one is like.
    """
    speech = speech or draw(st.sampled_from(sorted(NATIVE)))
    place = target(draw(rows(speech)), speech)
    wish = msgspec.structs.replace(draw(wishes), server_state=draw(st.booleans()))
    wanted = msgspec.structs.replace(inputs(place, wish, tools=draw(st.booleans())), prefix=("sys", "tools"))
    here, elsewhere = origin(speech), origin(speech, endpoint="https://other.example")
    told_by, talk = blocks(speech), Talk(here, start)
    ops = ["user", "user", "reply", "reply", "reply", "result", "end", "end", "system", "usage"]
    if repairs:
        ops.append("repair")
    if draw(st.booleans()):
        ops += ["curate"] * 3
    first = ["user", "reply"] if thinks else []
    for op in [*first, *draw(st.lists(st.sampled_from(ops), max_size=20))]:
        if op == "curate":
            curated(draw, talk)
        elif op == "user":
            talk.user(draw(st.sampled_from(["a", "thought\n"])))
        elif op == "system":
            talk.system(draw(st.sampled_from(["a", "thought\n"])))
        elif op == "reply":
            who = draw(
                st.sampled_from([here, here, here, here, elsewhere, origin("openai-chat"), origin(speech, endpoint="")])
            )
            header: Any = draw(st.sampled_from([{}, {}, {}, {"complete": False}]))
            recorded = draw(st.sampled_from(["", "right", "right", "wrong"]))
            if recorded and who == here:
                talk.note("request", record(wanted, talk, recorded == "right"), f"resp{talk.responses + 1}")
            thought_of = [draw(thoughts(speech, unlike))] if thinks else []
            said = once_signed([*thought_of, *draw(st.lists(told_by, max_size=4))], speech)
            talk.reply(*said, origin=who, usage=draw(usages), id=f"id{talk.responses}", **header)
        elif op == "result":
            talk.result(draw(names), "r", draw(st.sampled_from(["last", "resp1", "", "gone"])))
        elif op == "end":
            talk.end(draw(states))
        elif op == "usage":
            talk.note("provider_usage", Usage(1, 300, 200), draw(st.sampled_from(["resp1", "gone"])))
        else:
            hashes = talk.hashes() + talk.hashes("tool_call") + talk.hashes("other")
            named = draw(st.lists(st.sampled_from(hashes), max_size=3)) if hashes else []
            talk.repair(draw(stages), *named, model=draw(st.sampled_from(["m1", "m2"])))
    return Case(talk, wanted)


@given(cases(), st.lists(st.integers(0, 60), max_size=12))
def test_extending_step_by_step_is_folding_from_empty(case: Case, cuts: list[int]) -> None:
    """Bytes, decisions, counts, digests and parameters are the same at any cut, also where a chain broke."""
    talk, wanted = case
    assert outcome(wanted, talk.commits) == stepped(wanted, talk.commits, cuts)


@given(cases(ANTHROPIC), cases(ANTHROPIC, start=1000), st.integers(0, 60))
def test_a_state_is_not_changed_by_extending_it(case: Case, other: Case, cut: int) -> None:
    """A state says the same after a newer one was made of it, and may be extended in another direction."""
    talk, wanted = case
    head, tail, writer = talk.commits[:cut], talk.commits[cut:], writer_of(wanted)
    try:
        old = fold.fold(wanted, head, writer)
        before = told(Built(old))
        told(Built(fold.extend(old, tail, writer)))
        branch = told(Built(fold.extend(old, other.talk.commits, writer)))
        again = told(Built(fold.extend(old, tail, writer)))
    except REFUSALS:
        assume(False)
        raise
    assert before == told(Built(old)) == outcome(wanted, head)
    assert branch == outcome(wanted, [*head, *other.talk.commits])
    assert again == outcome(wanted, talk.commits)


def minted_here(talk: Talk, wanted: Inputs) -> set[bytes]:
    """The opaque values of the log that this target minted."""
    minted = origin(wanted.target.endpoint.dialect)
    values = [(commit.response, commit.value, stored(commit)) for commit in talk.commits if not commit.edit]
    here = {response for response, value, _ in values if isinstance(value, Response) and value.origin == minted}
    held = (block for response, _, block in values if response in here and block is not None)
    return {carrier.value.encode() for block in held for carrier in carriers_of(block)}


@given(cases())
def test_opaque_values_are_neither_invented_nor_repeated(case: Case) -> None:
    """Every opaque value in a body is one of the log, minted here; where signatures are checked, it is there once."""
    talk, wanted = case
    found = OPAQUE.findall(outcome(wanted, talk.commits).body)
    assert set(found) <= minted_here(talk, wanted)
    if wanted.target.rule.need_signature:
        assert len(found) == len(set(found))


@given(cases())
def test_every_carrier_and_text_has_one_decision(case: Case) -> None:
    """Each carrier of the log, and each reasoning text, is told of exactly once; the rest are stand-ins."""
    talk, wanted = case
    result = outcome(wanted, talk.commits)
    assume(not result.refused)
    assert told_of(talk) == named(talk, result.decisions)
    assert {decision.rule for decision in result.decisions} <= {wanted.target.rule.id}


def edited_while_required() -> Case:
    """Reasoning that the turn under way demands, and an edit of it, which does not hold until the turn ends."""
    talk = Talk(origin(ANTHROPIC)).user("a").reply(thought(ANTHROPIC, " ", "OPQ1"), call("c1")).result("c1", "r")
    talk.edit(talk.hashes()[0], think("other\n"))
    return Case(talk, inputs(target(native(need_signature=("*",)), ANTHROPIC)))


@example(edited_while_required())
@given(cases())
def test_decisions_point_at_their_messages(case: Case) -> None:
    """What goes out stands in the message at its index, as it is now or, where it says so, as it was made; what is
    dropped, or kept by the provider, has none.
    """
    talk, wanted = case
    result = outcome(wanted, talk.commits)
    assume(not result.refused)
    built = Built(fold.fold(wanted, talk.commits, writer_of(wanted)))
    messages = [canonical.source(each) for each in next(iter(built.sent.values()))]
    held = {commit.hash: content(talk, commit) for commit in talk.commits}
    made = {commit.hash: stored(commit) for commit in talk.commits}
    for decision in result.decisions:
        assert (decision.message == -1) is (decision.action in ("drop", "server"))
        if decision.message < 0 or not decision.block:
            continue
        block: Any = (made if decision.reason.endswith("goes as it was made") else held)[decision.block]
        if decision.what not in ("reasoning", "text"):
            assert any(carrier.value in messages[decision.message] for carrier in carriers_of(block))
        elif decision.what == "reasoning" and decision.action in ("native", "tags", "text", "summary"):
            assert canonical.string(block.thought).decode()[1:-1] in messages[decision.message]
            assert len(block.thought) == decision.characters


@given(cases(thinks=True))
def test_what_is_dropped_is_not_sent(case: Case) -> None:
    """A reasoning text of which every decision says that it stays away, and nothing else says, is not in a body."""
    talk, wanted = case
    result = outcome(wanted, talk.commits)
    assume(not result.refused)
    went = {each.block for each in result.decisions if each.action != "drop"}
    thoughts = {c.hash: c.value for c in talk.commits if isinstance(c.value, ThinkingBlock) and not c.edit}
    for hash in {each.block for each in result.decisions if each.what == "reasoning"} & thoughts.keys() - went:
        text = canonical.string(thoughts[hash].thought)[1:-1]
        others = (commit.payload for commit in talk.commits if commit.hash != hash)
        if len(text) > 6 and not any(text in payload for payload in others):
            assert text not in result.body


@given(cases(), wishes)
def test_counts_hold_together(case: Case, wish: Any) -> None:
    """What is stored does not depend on the settings; counts are never negative, and reasoning is a part of them."""
    talk, wanted = case
    one = outcome(wanted, talk.commits)
    other = outcome(msgspec.structs.replace(wanted, settings=wish), talk.commits)
    assume(not one.refused and not other.refused)
    assert one.counts.raw == other.counts.raw
    assert 0 <= one.counts.effective_reasoning <= one.counts.effective + 1


@given(cases(), st.integers(0, 60))
def test_what_the_provider_keeps_is_not_sent_again(case: Case, cut: int) -> None:
    """Decisions say so where the provider keeps a conversation, and the turn under way begins inside what is sent."""
    talk, wanted = case
    wanted = msgspec.structs.replace(wanted, settings=msgspec.structs.replace(settings(), server_state=True))
    result: Outcome = outcome(wanted, talk.commits[:cut])
    assume(not result.refused)
    built = Built(fold.fold(wanted, talk.commits[:cut], writer_of(wanted)))
    assert ("server" in built.actions) <= bool(built.request.kept)
    assert len(built.request) >= 0
    assert 0 <= built.request.open_at <= len(built.request) + 1
