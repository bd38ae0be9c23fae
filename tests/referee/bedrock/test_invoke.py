"""InvokeModel for Claude: the Messages format in Bedrock's envelope, and everything over real HTTP."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping

import pytest

from tests.referee.bedrock.talk import GPT, MANUAL, OPUS, SONNET, TOOLS, Talk, path_of, read_frames, signed, user
from tests.referee.learning import messages_message
from tests.referee.talk import Got, send
from thinkback_referee import ErrorInStream, MalformedJson, Referee, RejectCarrier, Step
from thinkback_referee.bedrock import API_KEY, BEDROCK, KEY, OTHER_KEY, Credential
from thinkback_referee.jsons import JsonObject, as_list, as_object
from thinkback_referee.persona import Persona
from thinkback_referee.transport import Incoming

VERSION: JsonObject = {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 4096}
ADAPTIVE: JsonObject = {**VERSION, "thinking": {"type": "adaptive"}}


def ask(text: str) -> JsonObject:
    return {"role": "user", "content": text}


@pytest.fixture
def referee() -> Iterator[Referee]:
    """A running referee."""
    with Referee() as running:
        yield running


def post(
    referee: Referee, model: str, operation: str, body: Mapping[str, object], credential: Credential | None = KEY
) -> Got:
    """A request over HTTP, signed, or with an API key where there is no credential."""
    data = json.dumps(body).encode()
    path = f"/bedrock-claude{path_of(model, operation)}"
    host = referee.url.removeprefix("http://")
    bare = Incoming("POST", path, {"host": host, "content-type": "application/json"}, data)
    headers = dict(signed(bare, credential).headers if credential else bare.headers)
    return send(referee, "POST", path, data, headers, None if credential else API_KEY)


def test_a_message_comes_whole(referee: Referee) -> None:
    """The body is that of the Messages format, with ids of Bedrock."""
    got = post(referee, OPUS, "invoke", {**ADAPTIVE, "messages": [ask("hi")]})
    assert (200, True) == (got.status, str(got.json["id"]).startswith("msg_bdrk_01"))
    assert "application/json" == got.headers["content-type"]


def test_a_message_comes_in_chunks(referee: Referee) -> None:
    """Events travel as base64 inside chunks; the last one carries Bedrock's own counts."""
    body = {**ADAPTIVE, "messages": [ask("hi")]}
    got = post(referee, OPUS, "invoke-with-response-stream", body)
    assert "application/vnd.amazon.eventstream" == got.headers["content-type"]
    frames = read_frames(got.data)
    assert {"chunk"} == {name for name, _ in frames}
    events = [as_object(json.loads(base64.b64decode(str(payload["bytes"])))) for _, payload in frames]
    assert ("message_start", True) == (events[0]["type"], "amazon-bedrock-invocationMetrics" in events[-1])
    whole = dict(post(referee, OPUS, "invoke", body).json)
    streamed = messages_message("".join(f"data: {json.dumps(event)}\n" for event in events))
    assert streamed is not None
    assert [block["type"] for block in map(as_object, as_list(whole["content"]))] == [
        as_object(block)["type"] for block in as_list(streamed["content"])
    ]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"anthropic_version": "2023-06-01"}, "anthropic_version: Field required"),
        ({"model": "claude-opus-5-5"}, "model: Extra inputs are not permitted"),
        ({"stream": True}, "stream: Extra inputs are not permitted"),
        ({"thinking": {"type": "disabled"}}, '"thinking.type.disabled" is not supported for this model.'),
        ({"anthropic_beta": ["made-up"]}, "Unexpected value(s) `made-up`"),
    ],
)
def test_the_envelope_is_checked(referee: Referee, changes: JsonObject, text: str) -> None:
    """Version, misplaced fields, betas and the model's own rules, unwrapped, in the shape of AWS."""
    got = post(referee, OPUS, "invoke", {**ADAPTIVE, "messages": [ask("hi")], **changes})
    assert (400, "ValidationException") == (got.status, got.headers["x-amzn-errortype"])
    assert str(got.json["message"]).startswith(text)


def test_reports_of_dropped_blocks_come_with_invoke() -> None:
    """What another AWS account minted is dropped, and listed for who asks."""
    beta: JsonObject = {"anthropic_beta": ["thinking-binding-controls-2026-08-01"]}
    with Referee() as referee:
        first = post(referee, OPUS, "invoke", {**ADAPTIVE, "messages": [ask("hi")]})
        said: JsonObject = {"role": "assistant", "content": first.json["content"]}
        body = {**ADAPTIVE, **beta, "messages": [ask("hi"), said, ask("on")]}
        assert [] == post(referee, OPUS, "invoke", body).json["input_transformations"]
        assert [] == post(referee, OPUS, "invoke", body, None).json["input_transformations"]
        reported = as_list(post(referee, OPUS, "invoke", body, OTHER_KEY).json["input_transformations"])
    assert ["organization_binding_mismatch"] == [as_object(entry)["reason"] for entry in reported]


def test_blocks_go_from_one_operation_to_the_other() -> None:
    """What Converse minted comes back by InvokeModel, as both are one service."""
    persona = Persona(BEDROCK)
    one = Talk(SONNET, {**MANUAL}, persona)
    one.messages = [user("hi")]
    text, signature = "a", ""
    for block in map(as_object, as_list(one.reply(Step(reasoning=text, text="Hello."))["content"])):
        inner = as_object(as_object(block.get("reasoningContent")).get("reasoningText"))
        signature = str(inner.get("signature", signature))
    thinking: JsonObject = {"type": "thinking", "thinking": text, "signature": signature}
    content = [thinking, {"type": "text", "text": "Hello."}]
    said: JsonObject = {"role": "assistant", "content": content}
    two = Talk(SONNET, {**VERSION}, persona, operation="invoke", messages=[ask("hi"), said, ask("on")])
    assert (200, "") == two.verdict(thinking={"type": "enabled", "budget_tokens": 1024})
    assert "messages.1.content.0: Invalid" in two.persona.reject(two.ask()).message


def test_errors_in_a_stream_are_exceptions() -> None:
    """A scripted error is an exception message; a malformed event is sound but for its JSON."""
    step = Step(text="one two", fault=ErrorInStream("slow down", "throttlingException"))
    with Referee([step, Step(text="one two", fault=MalformedJson())]) as referee:
        body = {**VERSION, "messages": [ask("hi")]}
        frames = read_frames(post(referee, SONNET, "invoke-with-response-stream", body).data)
        assert ("throttlingException", {"message": "slow down"}) == frames[-1]
        broken = post(referee, SONNET, "converse-stream", {"messages": [user("hi")]})
        with pytest.raises(json.JSONDecodeError):
            read_frames(broken.data)


def test_a_carrier_is_rejected_on_demand() -> None:
    """A scripted rejection comes over HTTP in the shape of AWS."""
    with Referee([Step(fault=RejectCarrier())]) as referee:
        got = post(referee, GPT, "converse", {"messages": [user("hi")]})
    assert (400, "ValidationException") == (got.status, got.headers["x-amzn-errortype"])


def test_signatures_are_verified_over_http(referee: Referee) -> None:
    """A request whose body was changed on the way is a 403; no secret is kept of any."""
    assert 200 == post(referee, SONNET, "converse", {"messages": [user("hi")], **TOOLS}).status
    path = f"/bedrock{path_of(SONNET)}"
    host = referee.url.removeprefix("http://")
    headers = dict(signed(Incoming("POST", path, {"host": host}, b"{}")).headers)
    got = send(referee, "POST", path, b'{"a":1}', headers, None)
    assert (403, "InvalidSignatureException") == (got.status, got.headers["x-amzn-errortype"])
    assert KEY.secret_key not in repr(referee.requests)


@pytest.mark.parametrize("data", [b"{", b"[]"])
def test_a_body_must_be_an_object(referee: Referee, data: bytes) -> None:
    """What is not a JSON object is a validation error."""
    path = f"/bedrock{path_of(SONNET)}"
    got = send(referee, "POST", path, data, {"content-type": "application/json"}, API_KEY)
    assert (400, "ValidationException") == (got.status, got.headers["x-amzn-errortype"])


def test_unknown_operations_are_not_found(referee: Referee) -> None:
    """Only the four operations are known."""
    assert 404 == send(referee, "POST", f"/bedrock{path_of(SONNET, 'count-tokens')}", b"{}").status


def test_models_are_listed_and_forgotten() -> None:
    """All rows are listed; a reset forgets what was minted."""
    persona = Persona(BEDROCK)
    assert {OPUS, GPT} <= set(BEDROCK.models("bedrock"))
    assert {""} == set(BEDROCK.hosts.values())
    one = Talk(SONNET, {**MANUAL}, persona, messages=[user("hi")])
    one.reply(Step(reasoning="a", text="Hello."))
    one.messages.append(user("on"))
    assert (200, "") == one.verdict()
    persona.reset()
    assert 400 == one.verdict()[0]
