"""What one dialect wrote, told to another: texts, calls, results, media and tools go along as far as they mean much."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import msgspec
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
    say,
    target,
)
from tests.every import every
from thinkback.compile import translate
from thinkback.model.blocks import Media, Text, ToolResult, Unknown
from thinkback.model.commits import Message, Tool, Tools
from thinkback.model.target import Settings

ALL = ["openai-chat", ANTHROPIC, BEDROCK, GEMINI, INTERACTIONS, MISTRAL, RESPONSES, "cohere", "ollama"]
FROM_TO = [(one, other) for one in ALL for other in ALL if one != other]


def to(speech: str, talk: Talk) -> Built:
    """The next request in a dialect."""
    return build(talk, target(native(), speech))


def ids(body: Any) -> list[str]:
    """The ids of calls and of results in a body, in order."""
    found: list[str] = []
    if isinstance(body, dict):
        names = ("call_id", "tool_use_id", "tool_call_id", "toolUseId")
        found += [body[name] for name in names if isinstance(body.get(name), str)]
        is_call = "function" in body or body.get("type") in ("tool_use", "function_call")
        if is_call and "call_id" not in body and isinstance(body.get("id"), str):
            found.append(body["id"])
        for key in ("functionCall", "functionResponse"):
            found += [body[key]["id"]] if "id" in body.get(key, {}) else []
    for value in body.values() if isinstance(body, dict) else body if isinstance(body, list) else ():
        found += ids(value)
    return found


@every(("one", "other"), FROM_TO)
@every("given", [("c1", "c2"), ("", ""), ("same", "same")])
def test_calls_and_results_keep_to_each_other(one: str, other: str, given: tuple[str, str]) -> None:
    """Also where their dialect gave them no ids, or one id twice; results stay in the order of the calls."""
    talk = Talk(origin(one)).user().reply(call(given[0]), call(given[1]), say("so"))
    talk.result(given[0], "first", "resp1").result(given[1], "second", "resp1")
    body = to(other, talk).sent
    found = ids(body)
    assert 4 == len(found)
    assert sorted(found[:2]) == sorted(found[2:])
    assert 2 == len(set(found))
    source = json.dumps(body)
    assert source.index("first") < source.index("second")


@pytest.mark.parametrize("other", [speech for speech in ALL if speech != "openai-chat"])
def test_ids_are_the_same_in_every_request(other: str) -> None:
    """What is made up depends on the log alone, so that the next request begins with the last."""
    talk = Talk(origin("openai-chat")).user().reply(call(""), call("")).result("").result("")
    before = to(other, talk).raw
    assert before == to(other, talk.reply(say("x")).end().user("b")).raw[: len(before)]


@every(("one", "other"), FROM_TO)
def test_what_was_said_is_told_and_its_verbatim_object_is_not(one: str, other: str) -> None:
    """Texts, refusals, calls and results go as they were understood."""
    text = Text("the answer", source_field="refusal", wire='{"verbatim":1}')
    talk = Talk(origin(one)).user("why").reply(text, call(wire='{"verbatim":2}'))
    talk.note("tool_result", ToolResult("c1", "found", wire='{"verbatim":3}', dialect=one), "resp1")
    body = to(other, talk).body
    assert b"verbatim" not in body
    for piece in (b"why", b"the answer", b"look", b"found"):
        assert piece in body


def test_own_results_go_back_as_they_came() -> None:
    """A result of the target's own dialect keeps its object; one of a foreign call does not."""
    wire = '{"type":"tool_result","tool_use_id":"c1","content":"found","more":1}'
    result = ToolResult("c1", "found", name="look", wire=wire, dialect=ANTHROPIC)
    for speech, kept in ((ANTHROPIC, True), ("openai-chat", True)):
        talk = Talk(origin(speech)).user().reply(call()).note("tool_result", result, "resp1")
        assert kept is (b'"more":1' in to(ANTHROPIC, talk).body)
    again = Talk(origin("openai-chat")).user().reply(call(""), call("")).note("tool_result", result, "resp1")
    assert b'"more":1' not in to(ANTHROPIC, again).body


def test_calls_without_a_result_are_told_so() -> None:
    """In parallel calls only one was answered: the other gets the same words every time."""
    talk = Talk(origin(ANTHROPIC)).user().reply(call("c1"), call("c2")).result("c2", "two").end("interrupted").user("b")
    for speech in ALL:
        body = to(speech, talk).body
        assert b"two" in body
        assert 1 == body.count(translate.INTERRUPTED.encode())


@pytest.mark.parametrize("speech", [BEDROCK, MISTRAL])
def test_a_question_behind_results_is_taken(speech: str) -> None:
    """Where roles alternate, or no question may stand behind results, they are one or something stands between."""
    talk = Talk(origin(speech)).user("a").reply(call()).result().end("interrupted").user("b").user("c")
    roles = [message["role"] for message in to(speech, talk).sent["messages"]]
    assert ["user", "assistant", "user"] == roles if speech == BEDROCK else True
    assert all(one != "tool" or other in ("tool", "assistant") for one, other in pairwise(roles))


@pytest.mark.parametrize("speech", ALL)
def test_an_answer_that_says_nothing_breaks_nothing(speech: str) -> None:
    """Responses without blocks, or of empty texts, leave a body that can be read, and no empty content."""
    talk = Talk(origin(speech)).user("a").reply().end().user("b").reply(say("")).end().user("c")
    assert b"c" in to(speech, talk).body
    if speech in (ANTHROPIC, GEMINI, BEDROCK):
        assert "assistant" not in {message.get("role") for message in next(iter(to(speech, talk).sent.values()))}


def test_messages_of_another_dialect_go_as_they_were_understood() -> None:
    """Text and media go along; of a part that only its dialect can say the others are told what it was."""
    image = Media("image/png", data="AAAA", wire='{"verbatim":1}')
    talk = Talk(origin(ANTHROPIC)).note("user", Message("", (Text("see"), image), '{"verbatim":2}', "openai-chat"))
    body = to(ANTHROPIC, talk).body
    assert b"verbatim" not in body
    assert b"AAAA" in body
    own = Message("see", (), '{"role":"user","content":"see","own":1}', ANTHROPIC)
    assert b'"own":1' in to(ANTHROPIC, Talk().note("user", own)).body
    for part in (Unknown('{"type":"odd"}'), Media("image/*", wire='{"file_id":"f"}')):
        built = to(ANTHROPIC, Talk().note("user", Message("", (Text("see"), part), "", "openai-chat")))
        assert b"cannot be shown here" in built.body
        (decision,) = built.decisions
        assert ("drop", "text") == (decision.action, decision.what)
        assert "a part that only openai-chat can say" in decision.reason


def test_tools_that_another_provider_runs_are_not_offered() -> None:
    """They are told of as what cannot be said; functions are offered in every dialect."""
    search = Tool("web_search", wire='{"type":"web_search_20250305","name":"web_search"}', dialect=ANTHROPIC)
    look = Tool("look", "Look.", '{"type":"object"}', wire='{"own":1}', dialect=ANTHROPIC)
    talk = Talk().note("tools", Tools((search, look))).user()
    own, other = talk.plan(target(native(), ANTHROPIC)), talk.plan(target(native(), RESPONSES))
    assert b"web_search_20250305" in bytes(own)
    assert b"web_search" not in bytes(other)
    assert b'"own"' not in bytes(other)
    assert b'"name":"look"' in bytes(other)
    assert [] == [control.key for control in own.controls]
    states = [("tools", "web_search", "unrepresentable"), ("tools", "look", "represented")]
    assert states == [(c.key, c.value, c.state) for c in other.controls]
    assert "own is not sent, as openai-responses has no name for it" == other.controls[1].reason
    assert "only anthropic has it, and e speaks openai-responses" == other.controls[0].reason.replace("{}", "anthropic")


def test_a_function_without_parameters_and_description_is_offered_to_everybody() -> None:
    """It looks bare, but it is no tool that its provider runs; whoever needs a schema gets an empty one."""
    chat = Tool("now", wire='{"type":"function","function":{"name":"now"}}', dialect="openai-chat")
    flat = Tool("then", wire='{"type":"function","name":"then"}', dialect=RESPONSES)
    odd = Tool("code", wire='["code"]', dialect="openai-chat")
    own = Talk().note("tools", Tools((chat, flat, odd))).user().plan(target(native(), ANTHROPIC))

    schema = b'"input_schema":{"type":"object","properties":{}}'
    assert [b'"name":"now"' in bytes(own), b'"name":"then"' in bytes(own)] == [True, True]
    assert 2 == bytes(own).count(schema)
    assert ["code"] == [control.value for control in own.controls]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ([{"type": "text", "text": "rain"}, {"type": "text", "text": "wind"}], "rain\nwind"),
        ([{"type": "image", "source": {"data": "aGk="}}], "(image, which cannot be shown here)"),
        (
            [{"type": "search_result", "source": "s", "title": "t", "content": [{"type": "text", "text": "found"}]}],
            "t\ns\nfound",
        ),
        ([{"type": "odd", "content": [{"no": 1}]}], "(odd, which cannot be shown here)"),
        ([{"type": "text", "text": "so"}, {"odd": 1}, 3], 'so\n{"odd":1}\n3'),
    ],
)
def test_a_result_of_several_parts_is_told_in_words(content: list[Any], told: str) -> None:
    """Texts as they are, and what else there was: nobody reads the bytes of an image as text."""
    wire = {"type": "tool_result", "tool_use_id": "c1", "content": content}
    result = ToolResult("c1", json.dumps(content), "f", wire=json.dumps(wire), dialect=ANTHROPIC)
    talk = Talk(origin(ANTHROPIC)).user().reply(call("c1"))
    talk.note("tool_result", result, "resp1")

    assert told == next(m["content"] for m in to("openai-chat", talk).sent["messages"] if m["role"] == "tool")


@pytest.mark.parametrize("other", [speech for speech in ALL if speech != ANTHROPIC])
@pytest.mark.parametrize("wire", ["", "{}"])
def test_a_model_is_told_that_a_tool_failed(other: str, wire: str) -> None:
    """By the member that a dialect has for it, else in the words of the result."""
    talk = Talk(origin(ANTHROPIC)).user().reply(call("c1"))
    failed = ToolResult("c1", "no disk", "f", is_error=True, wire=wire, dialect=ANTHROPIC if wire else "")
    talk.note("tool_result", failed, "resp1")
    asked, wanted = target(native(), other), Settings(client=ANTHROPIC)
    fine = Talk(origin(ANTHROPIC)).user().reply(call("c1"))
    fine.note("tool_result", msgspec.structs.replace(failed, is_error=False), "resp1")

    body = build(talk, asked, wanted).body
    assert b"no disk" in body
    assert build(fine, asked, wanted).body != body
    by_member = other in (BEDROCK, GEMINI, INTERACTIONS)
    assert (b"(The tool failed:)\\nno disk" in body) is not by_member


@pytest.mark.parametrize("other", ["openai-chat", ANTHROPIC])
def test_media_beside_the_content_of_a_result_are_told_and_named(other: str) -> None:
    """So is what else stands there that only its dialect has a name for."""
    image = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}
    answer = {"id": "c1", "name": "f", "response": {"output": "O"}, "parts": [image], "scheduling": "SILENT"}
    result = ToolResult(
        "c1", "O", "f", wire=json.dumps({"functionResponse": answer}), dialect=GEMINI, source_field="output"
    )
    talk = Talk(origin(GEMINI)).user().reply(call("c1"))
    talk.note("tool_result", result, "resp1")
    built = build(talk, target(native(), other), Settings(client=GEMINI))

    assert b"O\\n(image/png, which cannot be shown here)" in built.body
    assert ["parts, scheduling"] == [each.reason.rpartition(": ")[2] for each in built.decisions if each.what == "text"]


def test_the_object_around_a_result_is_not_told() -> None:
    """Another dialect is told what is inside; its own gets the object."""
    content = '{"output":{"x":1}}'
    wire = f'{{"functionResponse":{{"id":"c1","name":"f","response":{content}}}}}'
    result = ToolResult("c1", content, "f", wire=wire, dialect="gemini", source_field="output")
    talk = Talk(origin(ANTHROPIC)).user().reply(call("c1"))
    talk.note("tool_result", result, "resp1")

    assert '{"x":1}' == next(m["content"] for m in to("openai-chat", talk).sent["messages"] if m["role"] == "tool")
    assert '"response":{"output":{"x":1}}' in json.dumps(to("gemini", talk).sent, separators=(",", ":"))


@pytest.mark.parametrize("content", ["[1, 2", '[{"text": "x"}]', "rain"])
def test_a_text_that_looks_like_a_list_is_told_as_it_is(content: str) -> None:
    """Only what stood as a list on the wire is one."""
    wire = {"type": "tool_result", "tool_use_id": "c1", "content": content, "is_error": False}
    result = ToolResult("c1", content, "f", wire=json.dumps(wire), dialect=ANTHROPIC)
    talk = Talk(origin(ANTHROPIC)).user().reply(call("c1"))
    talk.note("tool_result", result, "resp1")

    assert content == next(m["content"] for m in to("openai-chat", talk).sent["messages"] if m["role"] == "tool")


def test_the_role_developer_is_said_where_it_is_known() -> None:
    """Elsewhere such a message is a system message; what else stands in it stays."""
    wire = json.dumps({"role": "developer", "name": "me", "content": "be brief"})
    talk = Talk().note("system", Message("be brief", wire=wire, dialect="openai-chat")).user()
    known = target(native(), "openai-chat")
    known = msgspec.structs.replace(known, endpoint=msgspec.structs.replace(known.endpoint, developer=True))

    roles = [build(talk, place).sent["messages"][0] for place in (known, target(native(), "openai-chat"))]

    assert ["developer", "system"] == [message["role"] for message in roles]
    assert ["me", "me"] == [message["name"] for message in roles]


def test_a_message_about_developers_is_no_developers() -> None:
    """The word alone, as a value or in what is no object, changes nothing."""
    said = [
        Message("x", wire=wire, dialect="openai-chat")
        for wire in ('{"role":"user","content":"developer"}', '"developer"')
    ]

    assert said == [translate.as_system(message) for message in said]
