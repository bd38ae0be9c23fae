"""The persona from outside: keys, versions, paths of its hosts, faults, and conversations over real HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.referee.anthropic.talk import (
    ADAPTIVE,
    MANUAL,
    WEATHER,
    Talk,
    calls_of,
    read_events,
    results,
    said,
    text_of,
    user,
    with_block,
    without,
)
from tests.referee.learning import messages_message
from tests.referee.talk import Got, send
from thinkback_referee import ErrorInStream, Referee, RejectCarrier, Step, code_word
from thinkback_referee.anthropic import ANTHROPIC, VERSION
from thinkback_referee.anthropic.judge import PASSED_BACK
from thinkback_referee.jsons import JsonObject, as_list, as_object
from thinkback_referee.persona import Persona

HEADERS = {"x-api-key": "org.key", "anthropic-version": VERSION, "content-type": "application/json"}
VERTEX = "/projects/p1/locations/global/publishers/anthropic/models/claude-opus-4-8"
HELLO: JsonObject = {"model": "claude-opus-4-8", "max_tokens": 100, "messages": [user("hi")]}


@pytest.fixture
def referee() -> Iterator[Referee]:
    """A running referee."""
    with Referee() as running:
        yield running


def post(referee: Referee, path: str, body: JsonObject, headers: dict[str, str] = HEADERS) -> Got:
    return send(referee, "POST", path, json.dumps(body).encode(), headers, None)


@pytest.mark.parametrize("path", ["/anthropic/v1/messages", "/anthropic/messages"])
def test_both_ways_to_write_the_path_work(referee: Referee, path: str) -> None:
    """A client may have the version in its base URL or append it."""
    got = post(referee, path, HELLO)
    assert (200, "message") == (got.status, got.json["type"])


@pytest.mark.parametrize(
    ("headers", "status", "kind", "text"),
    [
        ({"x-api-key": ""}, 401, "authentication_error", "x-api-key header is required"),
        ({"x-api-key": "bad-key"}, 401, "authentication_error", "invalid x-api-key"),
        ({"anthropic-version": ""}, 400, "invalid_request_error", "anthropic-version: header is required"),
    ],
)
def test_key_and_version_are_checked(
    referee: Referee, headers: dict[str, str], status: int, kind: str, text: str
) -> None:
    """A missing or wrong key is a 401, a missing version a 400, in the provider's shape."""
    got = post(referee, "/anthropic/v1/messages", HELLO, {**HEADERS, **headers})
    assert (status, {"type": kind, "message": text}) == (got.status, got.json["error"])


def test_a_bearer_token_will_do(referee: Referee) -> None:
    """OAuth clients send a bearer token instead of a key."""
    headers = {"authorization": "Bearer token", "anthropic-version": VERSION}
    assert 200 == post(referee, "/anthropic/v1/messages", HELLO, headers).status


@pytest.mark.parametrize(
    ("data", "text"),
    [(b"{", "not valid JSON"), (b"[]", "must be a JSON object"), (b'{"max_tokens":1}', "model: Field required")],
)
def test_a_body_must_be_an_object_with_a_model(referee: Referee, data: bytes, text: str) -> None:
    """What is not a request is refused."""
    got = send(referee, "POST", "/anthropic/v1/messages", data, HEADERS, None)
    assert (400, True) == (got.status, text in str(as_object(got.json["error"])["message"]))


def test_unknown_paths_and_methods_are_not_found(referee: Referee) -> None:
    """Only POST to the messages is known."""
    assert 404 == send(referee, "GET", "/anthropic/v1/messages", b"", HEADERS, None).status
    assert 404 == post(referee, "/anthropic/v1/models", HELLO).status
    assert 404 == post(referee, "/anthropic/v1/complete", HELLO).status
    assert 404 == post(referee, f"/vertex-claude{VERTEX}:predict", HELLO).status


def test_models_tell_what_they_take(referee: Referee) -> None:
    """The list has every model; one of them tells its types of thinking and efforts; an unknown one is a 404."""
    listed = send(referee, "GET", "/anthropic/v1/models", b"", HEADERS, None).json
    assert ("claude-3-7-sonnet", False) == (listed["first_id"], listed["has_more"])
    one = send(referee, "GET", "/anthropic/v1/models/claude-opus-4-6", b"", HEADERS, None).json
    able = as_object(one["capabilities"])
    types = as_object(as_object(able["thinking"])["types"])
    supported = {name for name, value in types.items() if as_object(value)["supported"]}
    assert {"enabled", "adaptive", "disabled"} == supported
    assert {"supported": False} == as_object(able["effort"])["xhigh"]
    assert 404 == send(referee, "GET", "/anthropic/v1/models/gpt-6", b"", HEADERS, None).status
    assert 401 == send(referee, "GET", "/anthropic/v1/models", b"", {}, None).status


def test_a_conversation_over_http_proves_its_replay(referee: Referee) -> None:
    """Two turns with calls, streamed and whole: both code words come back at the end."""
    messages: list[JsonObject] = []
    said_last = ""
    for number, question in enumerate(("What is the weather in Oslo?", "And in Rome?")):
        messages.append(user(question))
        while True:
            body: JsonObject = {**HELLO, **ADAPTIVE, "tools": [WEATHER], "messages": messages, "stream": not number}
            got = post(referee, "/anthropic/v1/messages", body)
            assert 200 == got.status, got.data
            message = messages_message(got.data.decode()) if body["stream"] else dict(got.json)
            assert message is not None
            messages.append({"role": "assistant", "content": message["content"]})
            if not calls_of(message):
                said_last = text_of(message)
                break
            messages.append(results(*calls_of(message)))
    for question in ("What is the weather in Oslo?", "And in Rome?"):
        assert f"code word {code_word(question)} still known" in said_last


def test_keys_are_not_kept(referee: Referee) -> None:
    """What arrived is kept without the key."""
    post(referee, "/anthropic/v1/messages", HELLO)
    assert "org.key" not in repr(referee.requests)
    assert "2023-06-01" == referee.requests[0].headers["anthropic-version"]


def test_an_error_in_a_stream_is_an_event_of_its_own() -> None:
    """A scripted error comes as the provider's error event."""
    with Referee([Step(text="one two", fault=ErrorInStream("Overloaded", "overloaded_error"))]) as referee:
        events = read_events(post(referee, "/anthropic/v1/messages", {**HELLO, "stream": True}).data)
    assert {"type": "overloaded_error", "message": "Overloaded"} == as_object(events[-1])["error"]


def test_a_carrier_is_rejected_on_demand() -> None:
    """A scripted rejection has status and shape of a real one."""
    with Referee([Step(fault=RejectCarrier())]) as referee:
        got = post(referee, "/anthropic/v1/messages", HELLO)
    assert (400, "invalid_request_error") == (got.status, as_object(got.json["error"])["type"])


def test_vertex_has_its_own_paths_and_keys(referee: Referee) -> None:
    """A bearer token, the model in the path, the version in the body; a stream has its own call."""
    body: JsonObject = {"anthropic_version": "vertex-2023-10-16", "max_tokens": 100, "messages": [user("hi")]}
    token = {"authorization": "Bearer t"}
    whole = post(referee, f"/vertex-claude{VERTEX}:rawPredict", body, token)
    assert (200, True) == (whole.status, str(whole.json["id"]).startswith("msg_vrtx_01"))
    streamed = post(referee, f"/vertex-claude/v1{VERTEX}:streamRawPredict", body, token)
    assert "message_start" == read_events(streamed.data)[0]["type"]
    assert 401 == post(referee, f"/vertex-claude{VERTEX}:rawPredict", body, {}).status
    for wrong in ({**body, "model": "x"}, {**body, "anthropic_version": "2023-06-01"}):
        assert 400 == post(referee, f"/vertex-claude{VERTEX}:rawPredict", wrong, token).status
    assert 400 == send(referee, "POST", f"/vertex-claude{VERTEX}:rawPredict", b"", token, None).status


def test_vertex_is_strict_about_betas_and_blocks() -> None:
    """Unknown beta names are refused; blocks of another host or project are not its own."""
    one = Talk(Persona(ANTHROPIC), {"model": "claude-opus-5-5", "max_tokens": 100, **ADAPTIVE}, messages=[user("hi")])
    one.reply(Step(reasoning="a", text="Hello."))
    one.messages.append(user("on"))
    two = Talk(one.persona, {"anthropic_version": "vertex-2023-10-16", "max_tokens": 100, **ADAPTIVE}, "vertex-claude")
    two.headers = {"authorization": "Bearer t", "anthropic-beta": "thinking-binding-controls-2026-08-01"}
    two.path = VERTEX.replace("4-8", "5-5") + ":rawPredict"
    two.messages = one.messages
    reported = as_list(two.answer(Step(text="x"))["input_transformations"])
    assert ["organization_binding_mismatch"] == [as_object(entry)["reason"] for entry in reported]
    two.headers["anthropic-beta"] = "effort-2025-11-24"
    status, text = two.verdict()
    assert (400, True) == (status, "Unexpected value(s) `effort-2025-11-24`" in text)


def deepseek() -> Talk:
    base: JsonObject = {"model": "deepseek-v4-pro", "max_tokens": 4096}
    return Talk(Persona(ANTHROPIC), base, "deepseek-anthropic")


def test_deepseek_wants_its_thoughts_back_unsigned() -> None:
    """In tool turns, and everywhere once tools are offered, thinking must be passed back, unaltered."""
    one = deepseek()
    one.parameters["tools"] = [WEATHER]
    one.turn("What is the weather in Oslo?")
    block = as_object(as_list(one.messages[1]["content"])[0])
    assert ("thinking", "") == (block["type"], block["signature"])
    one.messages.append(user("on"))
    assert (200, "") == one.verdict()
    assert (200, "") == one.verdict(tools=[], messages=[user("hi"), said("yo"), user("on")])
    gone = without(one.messages[1], "thinking")
    for wrong in (gone, with_block(one.messages[1], 0, thinking="other")):
        changed = [wrong if index == 1 else message for index, message in enumerate(one.messages)]
        assert (400, PASSED_BACK) == one.verdict(messages=changed)
        assert (200, "") == one.verdict(messages=changed, thinking={"type": "disabled"})
    assert PASSED_BACK == one.persona.reject(one.ask()).message


def test_deepseek_takes_a_placeholder_and_no_signature() -> None:
    """A turn of someone else's passes with any thinking, signed or not."""
    one = deepseek()
    blank: JsonObject = {"type": "thinking", "thinking": " "}
    foreign: JsonObject = {"role": "assistant", "content": [blank, {"type": "text", "text": "yo"}]}
    one.messages = [user("hi"), foreign, user("on")]
    assert (200, "") == one.verdict(tools=[WEATHER])


def test_deepseek_proves_the_replay() -> None:
    """The house model reads its notes from the text."""
    one = deepseek()
    one.parameters["tools"] = [WEATHER]
    assert "still known" in one.turn("What is the weather in Oslo?")
    assert 2 == one.turn("And in Rome?").count("still known")


def test_reset_forgets_what_was_minted() -> None:
    """After a reset old signatures are unknown."""
    one = Talk(Persona(ANTHROPIC), {"model": "claude-sonnet-4-5", "max_tokens": 4096, **MANUAL}, messages=[user("hi")])
    one.reply(Step(reasoning="a", text="Hello."))
    one.messages.append(user("on"))
    assert (200, "") == one.verdict()
    one.persona.reset()
    assert 400 == one.verdict()[0]


def test_all_hosts_list_their_models() -> None:
    """Each host names the models it plays; only Vertex has a project and a place in its base URL."""
    listed = {host: ANTHROPIC.models(host) for host in ANTHROPIC.hosts}
    assert {"anthropic", "vertex-claude", "deepseek-anthropic"} == set(listed)
    assert "claude-fable-5-2" in listed["vertex-claude"]
    assert "deepseek-v4-pro" in listed["deepseek-anthropic"]
    assert ["vertex-claude"] == [host for host, path in ANTHROPIC.hosts.items() if path]


def test_no_opaque_value_shows_in_a_repr() -> None:
    """Seals and answers do not print what they carry."""
    persona = Persona(ANTHROPIC)
    one = Talk(persona, {"model": "claude-sonnet-4-5", "max_tokens": 4096, **MANUAL}, messages=[user("hi")])
    message = one.reply(Step(reasoning="a secret", text="Hello."))
    signature = str(as_object(as_list(message["content"])[0])["signature"])
    seal = persona.ledger.seal(signature)
    assert seal is not None
    assert all(value not in repr(seal) for value in (signature, "secret"))


def test_an_aborted_stream_teaches_nothing() -> None:
    """A stream that breaks off, or an error body, is no message."""
    assert messages_message('data: {"type":"message_start","message":{}}\n') is None
    assert messages_message({"type": "error"}) is None
