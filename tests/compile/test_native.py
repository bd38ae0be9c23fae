"""Reasoning that goes back in its place: whole responses, ids that tie, signatures, stand-ins, prose."""

from __future__ import annotations

from typing import Any

import pytest

from tests.compile.build import (
    ANTHROPIC,
    BEDROCK,
    GEMINI,
    INTERACTIONS,
    MISTRAL,
    RESPONSES,
    Built,
    Talk,
    build,
    call,
    native,
    origin,
    redacted,
    rule,
    say,
    settings,
    signed_call,
    target,
    thought,
    tied,
)
from thinkback.errors import ReplayRefused
from thinkback.model.blocks import Carrier, Media, Text, ToolCall, Unknown
from thinkback.model.rule import Guard

CLAUDE = {"need_signature": ("thinking", "redacted_thinking"), "follower": True}
OPENAI = {"tied": True, "follower": True, "need_signature": ("reasoning",)}
GOOGLE = {"missing": ("dummy",), "signed_calls": True, "dummy": "STAND-IN", "need_signature": ("thought",)}


def claude(talk: Talk, *, wanted: Any = None, **fields: Any) -> Built:
    """The next request to Claude."""
    return build(talk, target(native(**{**CLAUDE, **fields}), ANTHROPIC), wanted)


def openai(talk: Talk, *, wanted: Any = None, **fields: Any) -> Built:
    """The next request to the Responses API."""
    return build(talk, target(native(**{**OPENAI, **fields}), RESPONSES), wanted)


def google(talk: Talk, *, wanted: Any = None, **fields: Any) -> Built:
    """The next request to Gemini."""
    return build(talk, target(native(**{**GOOGLE, **fields}), GEMINI), wanted)


def spoken(speech: str) -> Talk:
    """A conversation with a model of this place that speaks ``speech``."""
    return Talk(origin(speech))


def kinds(built: Built) -> list[str]:
    """The types of the items or content blocks of the assistant, in order."""
    found: list[str] = []
    for message in built.messages:
        content = message.get("content", [message])
        if message.get("role", "assistant") == "assistant" and isinstance(content, list):
            found += [each.get("type", "said") for each in (content if "role" in message else [message])]
    return found


# -- the response as a unit ------------------------------------------------------------------------------------------


def test_blocks_go_back_where_they_stood() -> None:
    """Reasoning before, between and behind texts keeps its place, and each block has its decision."""
    talk = (
        spoken(ANTHROPIC)
        .user()
        .reply(
            say("First."),
            thought(ANTHROPIC, "a", "SIG1"),
            redacted("RED"),
            say("Then."),
            thought(ANTHROPIC, "b", "SIG2"),
            call(),
        )
    )
    built = claude(talk.result())
    assert ["text", "thinking", "redacted_thinking", "text", "thinking", "tool_use"] == kinds(built)
    assert [(1, 1), (1, 1), (1, 2), (1, 4), (1, 4)] == [(each.message, each.part) for each in built.decisions]
    assert {"native"} == set(built.actions)


@pytest.mark.parametrize("bad", ["seen", "invalid"])
def test_one_faulty_block_keeps_the_others_of_its_response_away(bad: str) -> None:
    """A response goes back whole or not at all: its other opaque blocks would be refused without it."""
    talk = spoken(ANTHROPIC).turn("a", thought(ANTHROPIC, "one", "SIG1"), say("x"))
    talk.user("b").reply(
        thought(ANTHROPIC, "two", "SIG1" if bad == "seen" else "SIG2"), thought(ANTHROPIC, "three", "SIG3"), say("y")
    ).end()
    talk.user("c")
    if bad == "invalid":
        talk.repair("block", talk.hashes()[1])
    built = claude(talk)
    assert ["thinking", "text"] == kinds(built)
    assert "its response goes whole or not at all: " in built.reasons[4]


def test_a_block_that_came_twice_goes_once() -> None:
    """A value that one response brought twice goes out with the first block, and nothing else is lost for it."""
    twice = [thought(ANTHROPIC, "one", "SIG1") for _ in range(2)]
    built = claude(spoken(ANTHROPIC).user().reply(*twice, thought(ANTHROPIC, "two", "SIG2"), call()).result())
    assert ["thinking", "thinking", "tool_use"] == kinds(built)
    assert ["native", "native", "drop", "drop", "native", "native"] == built.actions


def test_a_readable_block_without_a_value_does_not_keep_others_away() -> None:
    """Unsigned reasoning is dropped alone where the endpoint wants signatures."""
    built = claude(
        spoken(ANTHROPIC).user().reply(thought(ANTHROPIC, "bare"), thought(ANTHROPIC, "two", "SIG"), call()).result()
    )
    assert ["thinking", "tool_use"] == kinds(built)
    assert "without its opaque value it must not go back" == built.reasons[0]


def test_unsigned_reasoning_goes_back_where_nobody_wants_signatures() -> None:
    """Compatible endpoints give none, and demand the block all the same; an empty one is omitted."""
    talk = spoken(ANTHROPIC).user().reply(thought(ANTHROPIC), thought(ANTHROPIC, "bare"), call()).result()
    built = claude(talk, need_signature=())
    assert ["thinking", "tool_use"] == kinds(built)
    assert ["nothing of it was kept", "native"] == [built.reasons[0], built.actions[1]]


def test_an_item_id_alone_is_no_signature() -> None:
    """An item that has an id and no encrypted content cannot be sent, and its id ties nothing any more."""
    talk = spoken(RESPONSES).user().reply(thought(RESPONSES, "s", id="rs_1"), tied(call(), "fc_1")).result()
    built = openai(talk)
    assert ["function_call"] == [each["type"] for each in built.messages[1:-1]]
    assert "id" not in built.messages[1]


def test_a_marker_is_not_replayed_and_ties_nothing() -> None:
    """A provider's placeholder stays away; what stands beside it keeps its id."""
    talk = spoken(RESPONSES).turn("a", thought(RESPONSES, "Thinking...", marker=True), tied(say("x"), "msg_1"))
    built = openai(talk.user())
    assert "msg_1" == built.messages[1]["id"]
    assert "a placeholder of the provider, not reasoning" == built.reasons[0]


# -- what must follow ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("behind", [(), (say(""),)], ids=["nothing", "an empty text"])
def test_reasoning_without_a_follower_is_left_out(behind: tuple[Text, ...]) -> None:
    """An answer that ends in reasoning is refused, and an empty text that is not written follows nothing."""
    talk = spoken(ANTHROPIC).turn("a", say("Hm."), thought(ANTHROPIC, "last", "SIG"), *behind).user("b")
    built = claude(talk)
    assert b"SIG" not in built.body
    assert "nothing follows it in its response" in built.reasons[0]
    assert "follower" not in " ".join(claude(talk, follower=False).reasons)


def test_a_follower_that_stays_away_is_none() -> None:
    """Where the item behind the reasoning went out before, or was refused, the reasoning would be the last."""
    search = Unknown('{"type":"web_search_call","id":"ws_1"}', (Carrier("item_id", "ws_1"),))
    talk = spoken(RESPONSES).turn("a", search, say("found")).turn("b", thought(RESPONSES, "t", "ENC", "rs_1"), search)
    assert b"ENC" not in openai(talk.user("c")).body
    talk = spoken(RESPONSES).turn("b", thought(RESPONSES, "t", "ENC", "rs_1"), search).user("c")
    assert b"ENC" in openai(talk).body
    assert b"ENC" not in openai(talk.repair("block", *talk.hashes("other"))).body


# -- ids that tie ----------------------------------------------------------------------------------------------------


def items() -> Talk:
    """A finished turn and an open one, of the Responses API."""
    talk = spoken(RESPONSES).turn(
        "a", thought(RESPONSES, "s", "ENC1", "rs_1"), tied(say("x"), "msg_1", Carrier("phase", "final"))
    )
    return talk.user("b").reply(thought(RESPONSES, "", "ENC2", "rs_2"), tied(call(), "fc_2")).result()


def test_items_go_back_with_their_ids() -> None:
    """Each reasoning item stands before the item it led to, and each decision points at the item it is about."""
    built = openai(items())
    assert ["user", "rs_1", "msg_1", "user", "rs_2", "fc_2", "function_call_output"] == [
        each.get("id") or each.get("role") or each["type"] for each in built.messages
    ]
    where = [(each.what, each.message, each.part) for each in built.decisions]
    assert [
        ("reasoning", 1, -1),
        ("item_id", 1, -1),
        ("encrypted", 1, -1),
        ("item_id", 2, -1),
        ("phase", 2, -1),
    ] == where[:5]
    assert [("item_id", 4, -1), ("encrypted", 4, -1), ("item_id", 5, -1)] == where[5:]


def test_an_item_whose_reasoning_stays_away_goes_without_its_id() -> None:
    """What ties it goes too; the phase of a message ties nothing."""
    built = openai(items(), wanted=settings(include_in_context=False))
    assert ["user", "assistant", "user", "rs_2", "fc_2", "function_call_output"] == [
        each.get("id") or each.get("role") or each["type"] for each in built.messages
    ]
    assert {"role": "assistant", "content": "x", "phase": "final"} == built.messages[1]
    phase = next(each for each in built.decisions if each.what == "phase")
    assert ("native", 1) == (phase.action, phase.message)
    assert "an id ties it to reasoning of its response that does not go" in built.reasons


def test_ids_stay_beside_reasoning_that_goes() -> None:
    """A trailing item that is left out is tied to nothing, so the pair before it keeps its ids."""
    pair = (thought(RESPONSES, "s", "ENC1", "rs_1"), tied(say("x"), "msg_1"))
    talk = spoken(RESPONSES).turn("a", *pair, thought(RESPONSES, "cut", "ENC2", "rs_2")).user("b")
    built = openai(talk)
    assert ["rs_1", "msg_1"] == [each["id"] for each in built.messages if "id" in each]
    talk = spoken(RESPONSES).turn("a", thought(RESPONSES), *pair).user("b")
    assert ["rs_1", "msg_1"] == [each["id"] for each in openai(talk).messages if "id" in each]


def test_a_custom_call_loses_its_id_with_its_reasoning() -> None:
    """Also where its verbatim item holds the id."""
    wire = '{"type":"custom_tool_call","id":"ctc_1","call_id":"c1","name":"look","input":"raw","more":1}'
    custom = tied(call(source_field="custom_tool_call", wire=wire), "ctc_1")
    talk = spoken(RESPONSES).user().reply(thought(RESPONSES, "s", "ENC", "rs_1"), custom).result()
    assert b"ctc_1" in openai(talk).body
    body = openai(talk.repair("all", *talk.hashes())).body
    assert b"ctc_1" not in body
    assert b'"custom_tool_call"' in body


# -- places ----------------------------------------------------------------------------------------------------------


def test_places_are_those_of_what_is_written() -> None:
    """Empty texts are not written, so they do not count, in items and in content blocks."""
    reply = (say(""), thought(RESPONSES, "s", "ENC1", "rs_1"), say(""), tied(say("x"), "msg_1"))
    built = openai(spoken(RESPONSES).turn("a", *reply).user("b"))
    assert [("reasoning", 1), ("item_id", 1), ("encrypted", 1), ("item_id", 2)] == [
        (e.what, e.message) for e in built.decisions
    ]
    claudes = claude(spoken(ANTHROPIC).turn("a", say(""), thought(ANTHROPIC, "t", "SIG"), say("x")).user("b"))
    assert [(1, 0), (1, 0)] == [(each.message, each.part) for each in claudes.decisions]


def test_places_where_contents_are_one_step() -> None:
    """Contents that stand together are one step, so that a thought behind them is the second."""
    talk = spoken(INTERACTIONS).turn("a", say("x"), say("y"), thought(INTERACTIONS, "t", "SIG"), say("z")).user("b")
    built = build(talk, target(native(), INTERACTIONS))
    assert ["user_input", "model_output", "thought", "model_output", "user_input"] == [
        each["type"] for each in built.messages
    ]
    assert {2} == {each.message for each in built.decisions}


def test_places_where_neighbours_are_one_message() -> None:
    """Two responses in a row are one message, and a conversation that the assistant begins has a message before it."""
    talk = Talk(origin(BEDROCK))
    talk.reply(thought(BEDROCK, "a", "SIG0"), say("x")).user().reply(thought(BEDROCK, "a", "SIG1"), say("x"))
    talk.reply(thought(BEDROCK, "b", "SIG2"), say("y"))
    built = build(talk, target(native(), BEDROCK))
    messages = built.sent["messages"]
    for decision in built.decisions:
        assert "assistant" == messages[decision.message]["role"]
    assert [1, 1, 3, 3, 3, 3] == [each.message for each in built.decisions]


# -- calls -----------------------------------------------------------------------------------------------------------


def test_calls_are_put_last_where_the_endpoint_wants_it() -> None:
    """Nothing stands between two calls; their order and the reasoning before them stay."""
    talk = spoken(RESPONSES).user().reply(thought(RESPONSES, "s", id="rs_1"), call("c1"), say("meanwhile"), call("c2"))
    built = openai(talk.result("c2", "two").result("c1", "one"), calls_last=True, tied=False, need_signature=())
    assert ["reasoning", "assistant", "c1", "c2", "c1", "c2"] == [
        each.get("call_id") or each.get("role") or each["type"] for each in built.messages[1:]
    ]
    assert ["one", "two"] == [each["output"] for each in built.messages[-2:]]


def signed(id: str, value: str) -> ToolCall:
    """A call with Gemini's signature on it."""
    return call(id, carriers=(Carrier("thought_signature", value),))


def test_the_first_call_gets_the_stand_in_where_it_has_no_signature() -> None:
    """In each step of the turn under way, on the first of parallel calls only."""
    talk = (
        spoken(GEMINI)
        .user()
        .reply(call("c1"), call("c2"))
        .result("c1")
        .result("c2")
        .reply(signed("c3", "SIG"))
        .result("c3")
    )
    built = google(talk)
    assert 1 == built.body.count(b"STAND-IN")
    assert "STAND-IN" == built.messages[1]["parts"][0]["thoughtSignature"]
    assert [("dummy", "thought_signature", 1), ("native", "thought_signature", 3)] == [
        (each.action, each.what, each.message) for each in built.decisions
    ]


def test_a_stand_in_stays_when_its_turn_is_over() -> None:
    """The next request begins as the last did; a setting that takes signatures away takes it away too."""
    talk = spoken(GEMINI).user().reply(call("c1"))
    before = google(talk.result("c1")).raw
    talk.reply(say("done")).end().user("b")
    assert before == google(talk).raw[: len(before)]
    assert b"STAND-IN" not in google(talk, wanted=settings(strip_from_context="all")).body
    assert b"STAND-IN" not in google(talk, wanted=settings(strict=True)).body


def test_a_signature_on_the_thought_before_stands_for_the_call() -> None:
    """Some give it there; without calls nothing is demanded; a row without stand-ins fills nothing."""
    on_thought = thought(INTERACTIONS, "t", "SIG")
    talk = spoken(INTERACTIONS).user().reply(on_thought, call()).result()
    row = native(**{**GOOGLE, "need_signature": ()})
    assert ["native", "native"] == build(talk, target(row, INTERACTIONS)).actions
    assert [] == google(spoken(GEMINI).turn("a", say("x")).user("b")).actions
    assert [] == google(spoken(GEMINI).user().reply(call()).result(), missing=()).actions


def test_a_row_that_writes_fields_may_demand_signatures_too() -> None:
    """Chat completions in front of Gemini want one on the first call, whatever their form."""
    row = rule(form="none", open_turn="must", later="never", missing=("dummy",), signed_calls=True, dummy="STAND-IN")
    built = build(Talk().user().reply(call()).result(), row)
    assert b"STAND-IN" in built.body
    assert ["dummy"] == built.actions


def test_a_signature_stays_with_a_call_that_gets_another_id() -> None:
    """Chat completions in front of Gemini: calls that share an id are told apart, and keep what they carry."""
    place = target(native(**GOOGLE), "openai-chat")
    built = build(Talk().user().reply(signed_call("c1", "SIG"), call("c1")).result().result(), place)
    first, second = built.messages[1]["tool_calls"]
    assert {"google": {"thought_signature": "SIG"}} == first["extra_content"]
    assert first["id"] != second["id"]
    assert ["native"] == built.actions


def test_a_refused_signature_is_replaced_by_the_stand_in() -> None:
    """After a repair the carrier stays away, and what is demanded is filled."""
    talk = spoken(GEMINI).user().reply(thought(GEMINI, "t", "SIG1"), signed("c1", "SIG2")).result("c1")
    assert b"STAND-IN" not in google(talk).body
    built = google(talk.repair("all", *talk.hashes(), *talk.hashes("tool_call")))
    assert b"SIG" not in built.body
    assert b"STAND-IN" in built.body


# -- what is demanded and cannot go ----------------------------------------------------------------------------------

OFF = {"missing": ("thinking-off-for-this-turn",), "thinking_off": {"thinking": {"type": "disabled"}}}
STRANGE = origin(ANTHROPIC, requested_model="m9", served_model="m9")


def test_thinking_is_turned_off_where_a_stranger_opened_the_loop() -> None:
    """The endpoint demands reasoning of the turn under way that may not go, or that never was."""
    for blocks in ((thought(ANTHROPIC, "t", "SIG"), call()), (call(),)):
        talk = spoken(ANTHROPIC).user().reply(*blocks, origin=STRANGE).result()
        built = claude(talk, **OFF)
        assert {"thinking": {"type": "disabled"}} == built.params
        assert b"SIG" not in built.body
        assert "thinking is off for this turn" in built.reasons[-1]


@pytest.mark.parametrize("tools", [True, False])
def test_thinking_is_turned_off_where_tools_make_every_message_need_reasoning(tools: bool) -> None:
    """A finished turn that never had any, a stranger's and one of its own; without tools nobody asks for it."""
    row = native(**{**CLAUDE, **OFF, "later": "must-with-tools"})
    for minted in (STRANGE, None):
        talk = spoken(ANTHROPIC).user().reply(say("x"), origin=minted).end().user("b")
        built = build(talk, target(row, ANTHROPIC), tools=tools)
        assert ({"thinking": {"type": "disabled"}} if tools else {}) == built.params
    talk = spoken(ANTHROPIC).turn("a", thought(ANTHROPIC, "old", "SIG1"), say("x")).user("b")
    assert tools == (
        b"SIG1" in build(talk, target(row, ANTHROPIC), settings(include_in_context=False), tools=tools).body
    )


def test_a_step_of_its_own_without_reasoning_is_sent_as_it_is() -> None:
    """The model did not think before it called: nothing is missing."""
    built = claude(spoken(ANTHROPIC).user().reply(call()).result(), **OFF)
    assert {} == built.params
    assert [] == built.decisions


def test_what_is_demanded_and_lost_is_refused_where_nothing_may_stand_in() -> None:
    """Before the network, with the block named."""
    talk = spoken(ANTHROPIC).user().reply(thought(ANTHROPIC, "t", "SIG"), call(), origin=STRANGE).result()
    with pytest.raises(ReplayRefused, match=f"demands the reasoning of block {talk.hashes()[0][:12]}"):
        claude(talk, missing=())


def test_settings_do_not_take_away_what_is_required() -> None:
    """In the turn under way no setting counts; in finished turns they do, and strict beats even the demand."""
    talk = spoken(ANTHROPIC).turn("a", thought(ANTHROPIC, "old", "SIG1"), say("x"))
    talk.user("b").reply(thought(ANTHROPIC, "new", "SIG2"), call()).result()
    for wanted in (settings(enabled=False), settings(strip_from_context="all"), settings(include_in_context=False)):
        built = claude(talk, wanted=wanted)
        assert (b"SIG1" in built.body, b"SIG2" in built.body) == (False, True)
    assert b"SIG" not in claude(talk, wanted=settings(strict=True)).body


def test_keep_last_counts_responses_from_the_end() -> None:
    """Whole responses of finished turns lose their reasoning, oldest first."""
    talk = spoken(ANTHROPIC)
    for number in range(3):
        talk.turn(str(number), thought(ANTHROPIC, "t", f"SIG{number}"), say("x"))
    built = claude(talk.user(), wanted=settings(keep_last=1))
    assert [False, False, True] == [f"SIG{number}".encode() in built.body for number in range(3)]


# -- strangers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("speech", [ANTHROPIC, BEDROCK, GEMINI, INTERACTIONS, RESPONSES, MISTRAL, "cohere", "ollama"])
@pytest.mark.parametrize("minted", ["dialect", "endpoint", "model", "account"])
def test_reasoning_of_others_stays_away(speech: str, minted: str) -> None:
    """Whoever differs in dialect, endpoint, model or account: neither text nor values go, the answer does."""
    other = {
        "dialect": origin("openai-chat"),
        "endpoint": origin(speech, endpoint="https://other.example"),
        "model": origin(speech, requested_model="m9", served_model="m9"),
        "account": origin(speech, account="else"),
    }[minted]
    row = native(guard=Guard(account=True))
    talk = Talk(other).turn("a", thought(speech, "secret thought", "OPAQUE", "rs_1"), say("the answer")).user("b")
    body = build(talk, target(row, speech)).body
    assert b"secret" not in body
    assert b"OPAQUE" not in body
    assert b"the answer" in body


@pytest.mark.parametrize("speech", [ANTHROPIC, BEDROCK, GEMINI, INTERACTIONS, RESPONSES, MISTRAL, "cohere", "ollama"])
@pytest.mark.parametrize(("foreign", "told"), [("drop", False), ("summary", True), ("text", True)])
def test_foreign_text_is_told_as_prose_on_request(speech: str, foreign: Any, told: bool) -> None:
    """The summary of a stranger stands before its first text; its opaque values never do."""
    talk = Talk(origin(speech, requested_model="m9", served_model=""))
    talk.turn("a", thought(speech, "a summary", "OPAQUE", "rs_1", kind="summary"), say("the answer")).user("b")
    built = build(talk, target(native(), speech), settings(foreign=foreign))
    assert told is (b"(Earlier reasoning, by m9: a summary)" in built.body)
    assert b"OPAQUE" not in built.body
    assert ("summary" if told else "drop") == built.actions[0]
    assert {"drop"} >= set(built.actions[1:])


def test_an_adopted_history_of_unknown_origin_goes_back_as_text_only() -> None:
    """Readable reasoning of the same dialect may go where no signature is wanted; opaque values never."""
    unknown = origin(ANTHROPIC, endpoint="", requested_model="", served_model="")
    talk = (
        Talk(unknown)
        .turn(
            "a",
            thought(
                ANTHROPIC,
                "read me",
                "",
            ),
            thought(ANTHROPIC, "signed", "SIG"),
            say("x"),
        )
        .user("b")
    )
    lax = claude(talk, need_signature=())
    assert b"read me" in lax.body
    assert b"SIG" not in lax.body
    assert b"read me" not in claude(talk).body
    chat = Talk(origin("openai-chat", endpoint="")).turn("a", thought(ANTHROPIC, "chat"), say("x")).user("b")
    built = claude(chat, need_signature=())
    assert b"chat" not in built.body
    assert ["its origin is not known, and it was written in another dialect"] == built.reasons


def test_what_only_its_maker_reads_stays_away_from_others() -> None:
    """Items of unknown kind and media of a stranger's answer are dropped, with a decision each."""
    odd = Unknown('{"type":"odd"}', (Carrier("item_id", "ID"), Carrier("encrypted", "ENC")))
    talk = Talk(origin(GEMINI)).turn("a", Media("image/png", data="AAAA"), odd, say("x")).user("b")
    built = claude(talk)
    assert ["text", "text", "item_id", "encrypted"] == [each.what for each in built.decisions]
    assert b"AAAA" not in built.body
    own = google(talk)
    assert b"AAAA" in own.body
    assert ["native", "native"] == own.actions


def test_text_of_the_same_dialect_keeps_its_own_object() -> None:
    """Another account of the same dialect reads annotations; what an id ties does not go."""
    body = '{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"x"}]}'
    own = tied(Text("x", wire=body), "msg_1")
    talk = Talk(origin(RESPONSES, endpoint="https://other.example")).turn("a", own).user("b")
    built = openai(talk)
    assert {"role": "assistant", "content": "x"} == built.messages[1]
    plain = Talk(origin(ANTHROPIC, requested_model="m9")).turn(
        "a", Text("x", wire='{"type":"text","text":"x","citations":[]}')
    )
    assert b"citations" in claude(plain.user("b")).body


def test_an_item_of_unknown_kind_and_origin_stays_in_its_dialect() -> None:
    """Nobody knows who made an adopted item: it goes back as it is, beside calls without their verbatim objects."""
    unknown = origin(ANTHROPIC, endpoint="", requested_model="", served_model="")
    wire = '{"type":"tool_use","id":"c1","name":"look","input":{},"more":1}'
    image = Media("image/*", wire='{"type":"image","source":{"type":"file","file_id":"f1"}}')
    talk = Talk(unknown).user("a").reply(Unknown('{"type":"odd"}'), image, call(wire=wire)).result()
    content = claude(talk).messages[1]["content"]
    assert ["odd", "image", "tool_use"] == [block["type"] for block in content]
    assert "f1" == content[1]["source"]["file_id"]
    assert "more" not in content[2]


def test_signatures_that_nobody_checks_may_be_alike() -> None:
    """Compatible endpoints put one placeholder on every block; none of them is lost for it."""
    talk = spoken(ANTHROPIC).turn("a", thought(ANTHROPIC, "one", "PLACE"), say("x"))
    talk.user("b").reply(thought(ANTHROPIC, "two", "PLACE"), thought(ANTHROPIC, "three", "PLACE"), call()).result()
    assert 3 == claude(talk, need_signature=()).body.count(b"PLACE")
    assert 1 == claude(talk).body.count(b"PLACE")
