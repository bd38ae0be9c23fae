"""Another program's messages that a dialect has no form for: as they were sent in their own, named in any other."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.compile.build import ANTHROPIC, MISTRAL, RESPONSES, UNKNOWN, Talk, call, native, say, target
from thinkback.compile import translate
from thinkback.errors import UnsupportedContent
from thinkback.model.blocks import NO_CALL, Carrier, Media, Origin, ToolResult, Unknown
from thinkback.model.commits import Message, Tool, Tools
from thinkback.model.target import Decision, Settings
from thinkback.turn.plan import Plan

CHAT = "openai-chat"
THEIRS = Settings(client=CHAT)
ORPHAN = ToolResult("c9", "It is cold.", call_field=NO_CALL, dialect=CHAT)


def planned(talk: Talk, dialect: str = CHAT, wanted: Settings = THEIRS) -> Plan:
    """The next request of ``talk``."""
    return talk.plan(target(native() if dialect != CHAT else None, dialect), wanted)


def messages(plan: Plan) -> list[dict[str, Any]]:
    """Its messages."""
    return [json.loads(each) for each in plan.messages]


def told(plan: Plan) -> list[Decision]:
    """Its decisions about texts."""
    return [each for each in plan.decisions if each.what == "text"]


@pytest.mark.parametrize("before", [Talk(), Talk().turn("Why?"), Talk().user().reply(say("Hm."))])
def test_a_result_without_its_call_stands_where_it_came(before: Talk) -> None:
    """In its own dialect as a result, behind a finished turn or in one under way."""
    talk = Talk()
    talk.commits = list(before.commits)
    plan = planned(talk.note("tool_result", ORPHAN).user("So?"))
    assert {"role": "tool", "tool_call_id": "c9", "content": "It is cold."} == messages(plan)[-2]
    assert [] == told(plan)


def test_a_result_without_its_call_is_text_elsewhere() -> None:
    """Prefixes that reasoning is bound to have it, too, and what a person made of it holds."""
    talk = Talk().note("tool_result", ORPHAN).user("So?")
    plan = planned(talk, RESPONSES)
    assert "It is cold." in messages(plan)[0]["content"]
    (decision,) = told(plan)
    assert ("text", 0, talk.commits[0].hash) == (decision.action, decision.message, decision.block)
    edited = planned(talk.edit(talk.commits[0].hash, Message("It is warm.")))
    assert {"role": "user", "content": "It is warm."} == messages(edited)[0]
    annotated = Talk().note("tool_result", ORPHAN).user("So?")
    annotated.annotate(annotated.commits[1].hash, reason="no")
    assert "tool" == messages(planned(annotated))[0]["role"]


def test_a_call_without_a_result_gets_none_in_its_own_dialect() -> None:
    """Elsewhere words stand in, which are named; of a session of our own nothing needs to be said."""
    talk = Talk(UNKNOWN).user().reply(call(), content="null").user("So?")
    assert ["user", "assistant", "user"] == [each["role"] for each in messages(planned(talk))]
    elsewhere = planned(talk, RESPONSES)
    assert translate.INTERRUPTED == messages(elsewhere)[2]["output"]
    assert ["the result of c1: the request has none, so the model is told of an interruption"] == [
        each.reason for each in told(elsewhere)
    ]
    own = planned(talk, wanted=Settings())
    assert translate.INTERRUPTED == messages(own)[2]["content"]
    assert [] == told(own)
    answered = Talk(UNKNOWN).user().reply(call(), content="null").result().user("So?")
    assert [] == told(planned(answered, RESPONSES))


@pytest.mark.parametrize(("dialect", "lost"), [(CHAT, ""), (RESPONSES, "prefix"), (ANTHROPIC, ""), (MISTRAL, "")])
def test_the_beginning_of_an_answer_is_named_where_nobody_continues_it(dialect: str, lost: str) -> None:
    """Some dialects continue what stands last, one if the message says so."""
    plan = planned(Talk(UNKNOWN).user().reply(say("It is"), message='{"prefix":true,"refusal":null}'), dialect)
    assert [lost] * bool(lost) == [each.reason.rpartition(": ")[2] for each in told(plan)]
    if dialect == MISTRAL:
        assert b'"prefix":true' in bytes(plan)


def test_members_of_messages_that_a_dialect_has_not_are_named() -> None:
    """Those that say nothing are none, nor are parameters that stand among the messages."""
    wire = '{"role":"user","content":"Hi","name":"bob","x":null}'
    plan = planned(Talk().note("user", Message("Hi", wire=wire, dialect=CHAT)), RESPONSES)
    assert ["not sent with the message, as the dialect has no name for it: name"] == [
        each.reason for each in told(plan)
    ]
    setting = Message("", wire='{"name":"bob"}', dialect=CHAT)
    assert () == translate.lost_members(setting, RESPONSES) == translate.lost_of("[]")


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        (Unknown('{"type":"odd"}'), " (odd)"),
        (Unknown("[]"), ""),
        (Media("image/*", wire='{"type":"image_file"}'), " (image_file)"),
        (Media("image/*"), ""),
    ],
)
def test_the_kind_of_a_part_is_named(part: Unknown | Media, kind: str) -> None:
    """As its program calls it."""
    with pytest.raises(UnsupportedContent) as caught:
        translate.message(Message("", (part,), "{}", CHAT), RESPONSES)
    assert caught.value.message.endswith(f"only openai-chat can say{kind}")


@pytest.mark.parametrize(
    ("wire", "dialect", "strict", "lost"),
    [
        ('{"type":"function","function":{"name":"f","strict":true,"odd":1}}', RESPONSES, True, ["odd"]),
        ('{"type":"function","function":{"name":"f","strict":false}}', RESPONSES, False, []),
        ('{"type":"function","function":{"name":"f"}}', ANTHROPIC, None, []),
        ('{"type":"function","function":{"name":"f","strict":true}}', ANTHROPIC, True, []),
        ('{"type":"function","function":{"name":"f","strict":true}}', "ollama", None, ["strict"]),
        ('{"type":"function","function":{"name":"f","strict":true}}', "bedrock", True, []),
    ],
)
def test_functions_are_as_strict_as_they_were(wire: str, dialect: str, strict: bool | None, lost: list[str]) -> None:
    """Where the dialect takes an omission for strict, the contrary is said."""
    tool = Tool("f", "F.", '{"type":"object"}', wire, CHAT)
    plan = Talk().note("tools", Tools((tool,))).user().plan(target(native(), dialect))
    written = json.loads(bytes(plan))
    (found,) = written.get("tools") or written["toolConfig"]["tools"]
    assert strict == found.get("function", found.get("toolSpec", found)).get("strict")
    assert lost == [each.reason.partition(" ")[0] for each in plan.controls if each.key == "tools"]


def test_a_tool_of_our_own_is_not_strict_unless_it_says_so() -> None:
    """Its optional parameters stay optional; a definition in a list is of its provider alone."""
    for strict, expected in ((None, False), (True, True)):
        tool = Tool("f", "F.", '{"type":"object"}', strict=strict)
        plan = Talk().note("tools", Tools((tool,))).user().plan(target(native(), RESPONSES))
        assert expected is json.loads(bytes(plan))["tools"][0]["strict"]
    odd = Tool("f", "F.", '{"type":"object"}', '["f"]', CHAT)
    plan = Talk().note("tools", Tools((odd,))).user().plan(target(native(), ANTHROPIC))
    assert [] == [each for each in plan.controls if each.key == "tools"]


@pytest.mark.parametrize(
    ("wire", "goes"),
    [
        ('{"type":"web_search_call","id":"ws_1","status":"completed"}', True),
        ('{"type":"item_reference","id":"ws_1","more":1}', False),
        ('{"type":"reference","id":"ws_1"}', False),
        ('{"id":"ws_1","more":1}', False),
    ],
)
def test_an_item_goes_back_to_its_dialect_and_the_name_of_one_does_not(wire: str, goes: bool) -> None:
    """The host would fill in what any key of its account said under that id."""
    item = Unknown(wire, (Carrier("item_id", "ws_1"),))
    talk = Talk(Origin(RESPONSES, "", "")).user().reply(item, say("Hm.")).user("So?")
    plan = planned(talk, RESPONSES, Settings(client=RESPONSES))
    assert goes is ("ws_1" in json.dumps(messages(plan)))
