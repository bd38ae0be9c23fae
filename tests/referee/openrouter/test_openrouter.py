"""OpenRouter's chat completions: details come back complete, unaltered, once, and to their own family of models."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256

import pytest

from tests.referee.talk import WEATHER, Body, Client, Got, post, result, said, send, user
from thinkback_referee import BAD_KEY, KNOWN, Call, ErrorInStream, Referee, RejectCarrier, Step, Verdict, code_word
from thinkback_referee.jsons import JsonObject, as_list, as_object, compact
from thinkback_referee.openrouter import OPENROUTER
from thinkback_referee.persona import Asked, Persona

CLAUDE = "anthropic/claude-haiku-4.5"
GPT = "openai/gpt-5.2"
GEMINI = "google/gemini-3.1-flash-lite-preview"
GROK = "x-ai/grok-4.1-fast"
THINKING: Body = {"reasoning": {"effort": "medium"}}
OPAQUE = [CLAUDE, GPT, GEMINI]
OSLO, BERGEN = "What is the weather in Oslo?", "And what about Bergen?"
THOUGHT = Step(reasoning="Because of it.", text="42")
CALLING = Step(reasoning="Look it up.", tool_calls=[Call("get_weather", {"city": "Oslo"}, "c1")])
HI = user("hi")


class Desk:
    """A client of the persona, without a server."""

    def __init__(self) -> None:
        self.persona = Persona(OPENROUTER)

    def asked(self, model: str, *messages: Mapping[str, object], key: str = "k", **parameters: object) -> Asked:
        body: JsonObject = {"model": model, "messages": [*messages], **THINKING, **parameters}
        headers = {"authorization": f"Bearer {key}"}
        return Asked("openrouter", "/api/v1/chat/completions", headers, body, model, body.get("stream") is True)

    def verdict(self, model: str, *messages: Mapping[str, object], **parameters: object) -> Verdict:
        return self.persona.judge(self.asked(model, *messages, **parameters))  # type: ignore[arg-type]

    def message(self, model: str, step: Step, *messages: Mapping[str, object], **parameters: object) -> Body:
        asked = self.asked(model, *messages, **parameters)  # type: ignore[arg-type]
        digest = sha256(f"{compact(asked.body)}{step}".encode()).hexdigest()
        whole = as_object(json.loads(self.persona.render(asked, step, digest).whole))
        return sendable(model, dict(as_object(as_object(as_list(whole["choices"])[0])["message"])))


def sendable(model: str, message: Body) -> Body:
    """The message as a careful client keeps it: Gemini's readable text does not come back."""
    details = [dict(as_object(entry)) for entry in as_list(message.get("reasoning_details"))]
    if model == GEMINI:
        details = [entry for entry in details if entry["type"] != "reasoning.text"]
    return {**message, "reasoning_details": details} if details else message


def raw_of(verdict: Verdict) -> str:
    """The upstream's sentence inside the router's error."""
    error = as_object(as_object(verdict.body)["error"])
    assert "Provider returned error" == error["message"]
    return str(as_object(json.loads(str(as_object(error["metadata"])["raw"]))["error"])["message"])


def details_of(message: Mapping[str, object]) -> list[Body]:
    return [dict(as_object(entry)) for entry in as_list(message["reasoning_details"])]


class Careful(Client):
    """A client that keeps every message but what must not come back."""

    def kept(self, message: Body) -> Body:
        return sendable(str(self.parameters["model"]), message)


@pytest.mark.parametrize("model", [*OPAQUE, GROK])
def test_a_careful_client_is_remembered(referee: Referee, model: str) -> None:
    """Over two turns with tools, the model names the code words of both."""
    talking = Careful(referee, "openrouter/api/v1", {"model": model, "tools": [WEATHER], **THINKING}, [])
    known = "; ".join(KNOWN.format(word=code_word(text)) for text in (OSLO, BERGEN))
    assert talking.ask(OSLO).endswith("still known.")
    assert talking.ask(BERGEN).endswith(f"{known}.")


@pytest.mark.parametrize("model", OPAQUE)
def test_altered_moved_repeated_and_foreign_details_are_refused(model: str) -> None:
    """Each opaque value belongs to its message, its model and its account, and comes once."""
    desk = Desk()
    message = desk.message(model, THOUGHT, HI)
    other = desk.message(model, THOUGHT, user("ho"))
    altered = [{**entry, **{name: f"{entry[name]}x" for name in ("data", "signature") if name in entry}}
               for entry in details_of(message)]  # fmt: skip
    cases = {
        "changed at messages[1]": [HI, {**message, "reasoning_details": altered}, user("on")],
        "moved to messages[1]": [HI, said("", "c1", reasoning_details=message["reasoning_details"]), result("c1")],
        "repeated at messages[3]": [HI, message, user("ho"), {**other, **message}, user("on")],
    }
    assert desk.verdict(model, HI, message, user("ho"), other, user("on")).ok
    assert list(cases) == [desk.verdict(model, *messages).reason for messages in cases.values()]
    assert "foreign at messages[1]" == desk.verdict(model, HI, message, user("on"), key="b").reason
    elsewhere = next(name for name in OPAQUE if name != model)
    assert "foreign format at messages[1]" == desk.verdict(elsewhere, HI, message, user("on")).reason


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (CLAUDE, "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`."),
        (GEMINI, "Function call is missing a thought_signature in functionCall parts."),
    ],
)
def test_calls_of_the_open_turn_need_their_carrier(model: str, text: str) -> None:
    """Anthropic and Google say so in their own words; a finished turn is free."""
    desk = Desk()
    call = said(None, "c1")
    refused = desk.verdict(model, HI, call, result("c1"))
    assert ("missing at messages[1]", True) == (refused.reason, raw_of(refused).startswith(text))
    assert desk.verdict(model, HI, call, result("c1"), said("done"), user("on")).ok


@pytest.mark.parametrize("model", [GPT, GROK])
def test_calls_may_come_alone_where_nothing_ties_them(model: str) -> None:
    """OpenAI's models and xAI's take a call without its details."""
    assert Desk().verdict(model, HI, said(None, "c1"), result("c1")).ok


def test_a_thought_of_claude_is_signed_and_unaltered() -> None:
    """Without its signature it is refused, and so is any other text under it."""
    desk = Desk()
    message = desk.message(CLAUDE, THOUGHT, HI)
    [entry] = details_of(message)
    unsigned = {name: value for name, value in entry.items() if name != "signature"}
    first = desk.verdict(CLAUDE, HI, {**message, "reasoning_details": [unsigned]}, user("on"))
    assert "messages.1.content.0.thinking.signature: Field required" == raw_of(first)
    second = desk.verdict(CLAUDE, HI, {**message, "reasoning_details": [{**entry, "text": "No."}]}, user("on"))
    assert "cannot be modified" in raw_of(second)


def test_the_texts_of_other_providers() -> None:
    """OpenAI names the item, Google says corrupted; the router's own error is around both."""
    desk = Desk()
    gpt, gemini = desk.message(GPT, THOUGHT, HI), desk.message(GEMINI, THOUGHT, HI)
    entries = [{**entry, "data": "x"} for entry in details_of(gpt) if entry["type"] == "reasoning.encrypted"]
    refused = desk.verdict(GPT, HI, {**gpt, "reasoning_details": entries}, user("on"))
    expected = f"The encrypted content for item {entries[0]['id']} could not be verified."
    assert raw_of(refused).startswith(expected)
    text = {"type": "reasoning.text", "text": "x", "format": "google-gemini-v1"}
    assert "Corrupted thought signature." == raw_of(
        desk.verdict(GEMINI, HI, {**gemini, "reasoning_details": [text]}, user("on"))
    )
    twice = [*details_of(gpt), *details_of(gpt)]
    assert "Duplicate item found with id rs_" in raw_of(
        desk.verdict(GPT, HI, {**gpt, "reasoning_details": twice}, user("on"))
    )


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"reasoning": {"budget": 5}}, "unknown reasoning.budget"),
        ({"reasoning": {"effort": "low", "max_tokens": 5}}, "two controls"),
        ({"reasoning_effort": "high"}, "two efforts"),
        ({"reasoning": {"effort": "extreme"}}, "bad effort"),
        ({"reasoning": {"enabled": False}}, "reasoning is mandatory"),
        ({"messages": [HI, said("x", reasoning_details={}), user("on")]}, "bad details at messages[1]"),
        ({"messages": [HI, said("x", reasoning_details=[{"type": "text"}]), user("on")]}, "bad details at messages[1]"),
        ({"messages": [HI, said("x", signature="y"), user("on")]}, "unknown field signature at messages[1]"),
        ({"messages": []}, "empty messages"),
    ],
)
def test_requests_that_are_refused(parameters: Body, reason: str) -> None:
    """Shapes and controls are judged before details."""
    verdict = Desk().verdict(GEMINI, HI, **parameters)
    assert (400, reason) == (verdict.status, verdict.reason)
    assert verdict.message


def test_cache_marks_stand_on_messages_and_calls() -> None:
    """As clients of the AI SDK put them there."""
    mark: Body = {"cache_control": {"type": "ephemeral"}}
    desk = Desk()
    called = desk.message(CLAUDE, CALLING, {**HI, **mark})
    marked = {**called, "tool_calls": [{**as_object(call), **mark} for call in as_list(called["tool_calls"])], **mark}
    assert desk.verdict(CLAUDE, {**HI, **mark}, marked, {**result("c1"), **mark}).ok


def test_whether_it_thinks() -> None:
    """Claude does when asked, others unless told otherwise."""
    desk = Desk()
    thinks = [
        desk.persona.view(desk.asked(CLAUDE, HI, reasoning={})).thinks,
        desk.persona.view(desk.asked(CLAUDE, HI, reasoning={"max_tokens": 1024})).thinks,
        desk.persona.view(desk.asked(GPT, HI, reasoning={})).thinks,
        desk.persona.view(desk.asked(GPT, HI, reasoning={"enabled": False})).thinks,
    ]
    assert [False, True, True, False] == thinks


def test_excluded_reasoning_is_not_shown() -> None:
    """The model thinks, and no field says what."""
    message = Desk().message(CLAUDE, THOUGHT, HI, reasoning={"effort": "low", "exclude": True})
    assert (None, False) == (message["reasoning"], "reasoning_details" in message)


def merged(got: Got) -> list[Body]:
    """The details of a stream, fragments of one type joined."""
    found: dict[object, Body] = {}
    for delta in got.deltas:
        for fragment in map(as_object, as_list(delta.get("reasoning_details"))):
            entry = found.setdefault(fragment["type"], {})
            for name, value in fragment.items():
                joined = name in ("text", "summary") and name in entry
                entry[name] = f"{entry[name]}{value}" if joined else value
    return list(found.values())


@pytest.mark.parametrize("model", [*OPAQUE, GROK])
@pytest.mark.parametrize("step", [THOUGHT, CALLING, Step(reasoning="Only this.")])
def test_a_stream_carries_the_details_in_fragments(model: str, step: Step) -> None:
    """Joined by type they have what the whole response has, and the request after it is accepted."""
    with Referee([step]) as referee:
        body: Body = {"model": model, "messages": [HI], "stream": True, **THINKING}
        got = post(referee, "openrouter", body, prefix="/api/v1")
        whole = Desk().message(model, step, HI)
        calls = ("c1",) if step.tool_calls else ()
        message = sendable(model, said(step.text, *calls, reasoning_details=merged(got)))
        rest = [result("c1")] if calls else [user("on")]
        more = post(
            referee, "openrouter", {**body, "stream": False, "messages": [HI, message, *rest]}, prefix="/api/v1"
        )
    kept = sendable(model, {"reasoning_details": merged(got)})
    assert sorted(str(entry["type"]) for entry in details_of(whole)) == sorted(
        str(entry["type"]) for entry in details_of(kept)
    )
    assert (200, b": OPENROUTER PROCESSING\n\n") == (more.status, got.data[: got.data.index(b"data")])
    assert "[DONE]" == got.events[-1]


def test_a_signature_comes_when_the_answer_has_begun() -> None:
    """Its fragment has no text, and stands behind the first piece of the answer."""
    with Referee([THOUGHT]) as referee:
        body: Body = {"model": CLAUDE, "messages": [HI], "stream": True, **THINKING}
        deltas = post(referee, "openrouter", body, prefix="/api/v1").deltas
    place = next(index for index, delta in enumerate(deltas) if "signature" in str(delta))
    assert ("42", False) == (
        deltas[place - 1]["content"],
        "text" in as_object(as_list(deltas[place]["reasoning_details"])[0]),
    )


def test_keys_models_and_bodies(referee: Referee) -> None:
    """The list is open to a key, and what is no request is refused."""
    listed = send(referee, "GET", "/openrouter/api/v1/models").json["data"]
    assert CLAUDE in [as_object(entry)["id"] for entry in as_list(listed)]
    wrong = post(referee, "openrouter", {"model": GPT}, key=BAD_KEY, prefix="/api/v1")
    assert (401, {"message": "No auth credentials found", "code": 401}) == (wrong.status, wrong.json["error"])
    unknown = post(referee, "openrouter", {"model": "x/y", "messages": [HI]}, prefix="/api/v1")
    assert (400, {"message": "x/y is not a valid model ID", "code": 400}) == (unknown.status, unknown.json["error"])
    statuses = [send(referee, "POST", "/openrouter/api/v1/chat/completions", data).status for data in (b"{", b"{}")]
    assert [400, 400] == statuses


def test_faults_are_worded_by_the_router(referee: Referee) -> None:
    """A rejected carrier is the provider's refusal, an error in a stream finishes the choice."""
    referee.push(Step(fault=RejectCarrier()), Step(text="x", fault=ErrorInStream("gone", "502")))
    body: Body = {"model": GPT, "messages": [HI], **THINKING}
    rejected = post(referee, "openrouter", body, prefix="/api/v1")
    assert ("rejected as scripted", True) == (rejected.headers["x-referee"], b"could not be verified" in rejected.data)
    broken = post(referee, "openrouter", {**body, "stream": True}, prefix="/api/v1").chunks[-1]
    assert {"code": "502", "message": "gone"} == broken["error"]


def test_reset_forgets_what_was_minted() -> None:
    """Afterwards no carrier is known."""
    desk = Desk()
    message = desk.message(GPT, THOUGHT, HI)
    desk.persona.reset()
    assert "changed at messages[1]" == desk.verdict(GPT, HI, message, user("on")).reason
    assert "rejected as scripted" == desk.persona.reject(desk.asked(GPT, HI, message, user("on"))).reason
