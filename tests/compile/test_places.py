"""What stands where a dialect or an endpoint has no place for what the log holds, or demands more than it holds."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.compile.build import (
    ANTHROPIC,
    BEDROCK,
    GEMINI,
    INTERACTIONS,
    MISTRAL,
    RESPONSES,
    Talk,
    build,
    call,
    native,
    origin,
    rule,
    say,
    settings,
    target,
    think,
    thought,
)
from thinkback.compile import translate
from thinkback.errors import ReplayRefused
from thinkback.model.blocks import Media, Text, Unknown
from thinkback.model.commits import Message, Tool, Tools
from thinkback.model.rule import Rule
from thinkback.model.target import Settings
from thinkback.turn.plan import History

STRICT = settings(strict=True)
CLIP = Media("video/mp4", data="AAAA", name="clip.mp4")
NEEDS = native(needs_tools=True, no_tools={"tool_choice": {"type": "none"}})


def sent(talk: Talk, row: Rule, speech: str = "openai-chat", tools: Any = None, **params: Any) -> dict[str, Any]:
    """The body of the next request."""
    made = History(talk.commits).plan(target(row, speech), Settings(), tools, params)
    found: dict[str, Any] = json.loads(bytes(made))
    return found


# -- tools that must be offered ------------------------------------------------------------------------------------


def called(*more: Any) -> Talk:
    """A finished turn with two calls of one tool, offered before with its description."""
    offered = Tools((Tool("look", "Look around."), Tool("go", "Go.")))
    talk = Talk(origin(ANTHROPIC)).note("tools", offered).user().reply(call("a"), call("b"), *more)
    return talk.result("a").result("b").reply(say("so")).end().user("next")


def test_where_no_tool_is_wanted_those_of_before_are_offered() -> None:
    """As they were offered last, with the parameters that forbid a call."""
    body = sent(called(), NEEDS, ANTHROPIC, ())
    assert [("look", "Look around."), ("go", "Go.")] == [(tool["name"], tool["description"]) for tool in body["tools"]]
    assert {"type": "none"} == body["tool_choice"]


def test_a_tool_that_was_never_offered_gets_an_open_schema() -> None:
    """An adopted conversation has calls without definitions."""
    talk = Talk(origin(ANTHROPIC)).user().reply(call()).result().reply(say("so")).end().user("next")
    (tool,) = sent(talk, NEEDS, ANTHROPIC)["tools"]
    assert ("look", {"type": "object"}) == (tool["name"], tool["input_schema"])


def test_tools_that_are_wanted_or_were_not_called_change_nothing() -> None:
    """Nor does an endpoint that needs none."""
    body = sent(called(), NEEDS, ANTHROPIC)
    assert (["look", "go"], False) == ([tool["name"] for tool in body["tools"]], "tool_choice" in body)
    assert "tools" not in sent(Talk(origin(ANTHROPIC)).turn().user("next"), NEEDS, ANTHROPIC, ())
    assert {"tools", "tool_choice"}.isdisjoint(sent(called(), native(), ANTHROPIC, ()))


# -- system messages -----------------------------------------------------------------------------------------------


def test_a_default_system_message_stands_where_there_is_none() -> None:
    """One of the conversation, or the parameter itself, takes its place."""
    row = rule(default_system="Help.", system="top")
    assert "Help." == sent(Talk().user(), row, RESPONSES)["instructions"]
    assert "Be brief." == sent(Talk().system().user(), row, RESPONSES)["instructions"]
    assert "Mine." == sent(Talk().user(), row, RESPONSES, instructions="Mine.")["instructions"]
    assert "instructions" not in sent(Talk().user(), rule(system="top"), RESPONSES)


def test_later_system_messages_are_told_as_the_users() -> None:
    """``lead``: those before the first message of anybody else stand first, all others in their place."""
    talk = Talk(origin("cohere")).system("one").system("two").user("a").reply(say("b")).end().system("three").user("c")
    found = build(talk, target(rule(system="lead"), "cohere")).messages
    told = [("system", "one"), ("system", "two"), ("user", "a"), ("user", "three"), ("user", "c")]
    assert told == [(each["role"], each["content"]) for each in found if each["role"] != "assistant"]
    inline = build(talk, target(rule(system="inline"), "cohere")).messages
    assert 3 == sum(each["role"] == "system" for each in inline)


def test_a_system_message_that_a_program_has_among_the_others_stays_there() -> None:
    """In the dialect that it was written in: another one has it where it has them all, and so has the top of this."""
    wire = '{"role":"system","content":[{"type":"tool_addition","tool":{"name":"g"}}]}'
    added = Message("", (Unknown('{"type":"tool_addition","tool":{"name":"g"}}'),), wire, ANTHROPIC)
    talk = Talk(origin(ANTHROPIC)).system().turn().user("b").note("system", added)
    body = sent(talk, rule(), ANTHROPIC)
    assert [{"type": "text", "text": "Be brief."}] == body["system"]
    assert [{"role": "user", "content": "b"}, json.loads(wire)] == body["messages"][-2:]
    bound = sent(talk, native(prefix_bound=True, system="top"), ANTHROPIC)
    assert (body["system"], body["messages"][-2:]) == (bound["system"], bound["messages"][-2:])
    assert json.loads(wire)["content"] == sent(Talk().note("system", added).user(), rule(), ANTHROPIC)["system"]
    assert "system" not in sent(talk, rule(), RESPONSES)


# -- parts that a dialect cannot take ------------------------------------------------------------------------------


@pytest.mark.parametrize("speech", [ANTHROPIC, MISTRAL, RESPONSES, "cohere", "ollama"])
def test_media_without_a_place_are_described(speech: str) -> None:
    """The rest of the message stays, and a decision says what became of them, in every request anew."""
    talk = Talk(origin(speech)).note("user", Message("see", (Text("see"), CLIP)))
    built = build(talk, target(rule(), speech))
    assert b"(video/mp4 clip.mp4, which cannot be shown here)" in built.body
    assert b"AAAA" not in built.body
    (decision,) = built.decisions
    assert ("drop", "text", talk.commits[0].hash, "r") == (
        decision.action,
        decision.what,
        decision.block,
        decision.rule,
    )
    assert decision.reason.startswith("the dialect has no place for a part of this message: ")
    assert "video/mp4" in decision.reason


@pytest.mark.parametrize("speech", [ANTHROPIC, MISTRAL, RESPONSES, "cohere", "ollama"])
def test_parts_with_a_place_go_beside_those_without(speech: str) -> None:
    """Each that stays away is told in its place and named."""
    image = Media("image/png", data="aGk=")
    odd = Unknown('{"type":"odd"}')

    parts = (Text("see"), odd, image, CLIP, Text("so"))
    talk = Talk(origin(speech)).note("user", Message("see so", parts, dialect="openai-chat"))
    built = build(talk, target(rule(), speech))
    (decision,) = built.decisions
    assert b"aGk=" in built.body
    assert b"AAAA" not in built.body
    assert "a message has a part that only openai-chat can say (odd)" in decision.reason
    assert "video/mp4" in decision.reason
    if speech != "ollama":  # its images are a member of their own
        places = [built.body.index(said) for said in (b"see\\n(a part that", b"aGk=", b"(video/mp4 clip.mp4, which")]
        assert sorted(places) == places


def test_a_request_of_the_first_recipe_has_notes_for_all_parts() -> None:
    """So it was sent, and so it can be built again."""
    parts = (Text("see"), Media("image/png", data="aGk="), CLIP)
    talk = Talk(origin(ANTHROPIC)).note("user", Message("see", parts))
    plan = History(talk.commits).plan(target(rule(), ANTHROPIC), Settings(), None, {}, recipe=1)
    told = b"see\\n(image/png, which cannot be shown here)\\n(video/mp4 clip.mp4, which cannot be shown here)"
    assert told in bytes(plan)


def test_parts_that_cannot_stand_together_are_described() -> None:
    """Each alone has a place in the dialect, all of them have none."""
    parts = (Text("see"), Media("image/png", data="aGk="), Unknown('{"type":"odd"}'))
    message = Message("see", parts, dialect="openai-chat")
    built = build(Talk(origin(ANTHROPIC)).note("system", message).user(), target(rule(), INTERACTIONS))
    assert b"aGk=" not in built.body
    assert b"see\\n(image/png, which cannot be shown here)\\n(a part that cannot be shown here)" in built.body


def test_media_with_a_place_are_sent() -> None:
    """Nothing is said of them."""
    built = build(Talk(origin(GEMINI)).note("user", Message("see", (Text("see"), CLIP))), target(rule(), GEMINI))
    assert (True, []) == (b"AAAA" in built.body, built.decisions)


@pytest.mark.parametrize("speech", [ANTHROPIC, BEDROCK, GEMINI, INTERACTIONS, RESPONSES, "cohere"])
def test_a_system_message_in_words_looks_like_any_other(speech: str) -> None:
    """Also where it stands outside the message array."""
    odd = Message("", (Text("see"), Unknown('{"type":"odd"}')), "", "openai-chat")
    plain = Message("see\n(a part that cannot be shown here)")
    built = build(Talk().note("system", odd).user(), target(rule(), speech))
    assert build(Talk().note("system", plain).user(), target(rule(), speech)).body == built.body
    assert ["drop"] == built.actions


def test_words_for_each_kind_of_part() -> None:
    """Texts as they are, empty ones not at all; media by kind and name."""
    parts = (Text("a"), Text(""), Media("image/*", url="https://x.example/i"), CLIP, Unknown("{}"))
    assert translate.described(Message("", parts)).text.split("\n") == [
        "a",
        "(image/*, which cannot be shown here)",
        "(video/mp4 clip.mp4, which cannot be shown here)",
        "(a part that cannot be shown here)",
    ]


# -- reasoning that is demanded and forbidden ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "refused"),
    [
        (rule(open_turn="must"), True),
        (rule(open_turn="must", scope="tool-calls"), True),
        (rule(open_turn="must", missing=("placeholder",)), True),
        (rule(open_turn="must", missing=("placeholder", "none")), False),
        (rule(open_turn="must", thinks_when=({"think": True},)), False),
        (rule(open_turn="should"), False),
        (rule(open_turn="may"), False),
    ],
)
def test_strict_mode_refuses_where_reasoning_is_demanded(row: Rule, refused: bool) -> None:
    """Unless the endpoint is known to take nothing in its place, or does not think."""
    talk = Talk().loop()
    if not refused:
        assert [None] == build(talk, row, STRICT).fields
        return
    with pytest.raises(ReplayRefused, match=r"reasoning\.strict sends nothing, and e demands reasoning back") as caught:
        build(talk, row, STRICT)
    assert {"rule": "r", "model": "m1"} == caught.value.details


def test_strict_mode_looks_at_each_place() -> None:
    """A demand about calls does not hold for a message without; one about the turn under way not for finished ones."""
    finished = Talk().turn().user("next")
    assert [None] == build(finished, rule(open_turn="must", later="must", scope="tool-calls"), STRICT).fields
    assert [None] == build(finished, rule(open_turn="must"), STRICT).fields
    with pytest.raises(ReplayRefused):
        build(finished, rule(open_turn="must", later="must"), STRICT)
    assert ["on Hello?"] == build(Talk().turn().user("next"), rule(open_turn="must", later="must")).fields


# -- ids of calls --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("speech", ["openai-chat", ANTHROPIC, BEDROCK, RESPONSES])
def test_ids_that_were_given_twice_are_told_apart(speech: str) -> None:
    """Also in the dialect that gave them, also where a call is kept verbatim; results keep to their calls."""
    wire = '{"id":"same","type":"function","function":{"name":"look","arguments":"{}"}}'
    verbatim = {"wire": wire} if speech == "openai-chat" else {}
    talk = Talk(origin(speech)).user().reply(thought(speech), call("same", **verbatim), call("same", **verbatim))
    talk.result("same", "first").result("same", "second")
    body = build(talk, target(native(open_turn="should"), speech)).body
    made = made_up(body)
    assert (b'"same"' in body, len(made)) == (False, 2)
    assert body.index(b"first") < body.index(b"second")


def made_up(body: bytes) -> set[str]:
    """The made-up ids in a body."""
    return {
        piece.partition('"')[0] for piece in body.decode().split('"call_')[1:] if len(piece.partition('"')[0]) == 24
    }


def test_ids_that_differ_stay_as_they_are() -> None:
    """Their calls go out verbatim; calls without an id share none."""
    talk = Talk().user().reply(think("t"), call("a"), call("b")).result("a").result("b")
    assert ["a", "b"] == [each["id"] for each in build(talk).messages[1]["tool_calls"]]
    talk = Talk(origin(GEMINI)).user().reply(call(""), call("")).result("").result("")
    assert b'"call_' not in build(talk, target(native(), GEMINI)).body


@pytest.mark.parametrize(("told", "expected"), [("Results end here.", ["Results end here."]), ("", [])])
def test_a_word_may_stand_between_results_and_a_system_message(told: str, expected: list[str]) -> None:
    """Where a model takes the one for a part of the other, it is told; a system message elsewhere needs none."""
    here = target(native(system="late", after_results=told), ANTHROPIC)
    talk = Talk(origin(ANTHROPIC)).system().user().reply(say("Hi."), call()).result().system("In French.")
    messages = build(talk, here).messages
    assert [*expected, "In French."] == [message["content"] for message in messages[3:]]
    later = Talk(origin(ANTHROPIC)).system().user().reply(say("Hi.")).system("In French.")
    assert ["In French."] == [message["content"] for message in build(later, here).messages[2:]]


def test_what_is_a_parameter_elsewhere_is_no_message() -> None:
    """An item by which one dialect changes settings goes out there, and is left out with a decision in another."""
    setting = Message("", (), '{"type":"configuration_update","reasoning":{"effort":"low"}}', RESPONSES)
    talk = Talk(origin(RESPONSES)).user().note("system", setting)
    assert {"reasoning": {"effort": "low"}, "type": "configuration_update"} == build(
        talk, target(native(), RESPONSES)
    ).messages[-1]
    built = build(talk, target(native(), ANTHROPIC))
    assert (["user"], ["a setting of a request in openai-responses"]) == (
        [message["role"] for message in built.messages],
        built.reasons,
    )
