"""The hosts over HTTP: paths, keys, stored responses, and whole conversations of the official client."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from tests.referee.responses.desk import WEATHER, Body
from tests.referee.talk import Got, send
from thinkback_referee import BAD_KEY, KNOWN, LOST, ErrorInStream, NoDone, Referee, RejectCarrier, Step, code_word
from thinkback_referee.jsons import as_list, as_object
from thinkback_referee.responses.profiles import HOSTS, models_of

OSLO = "What is the weather in Oslo?"
BERGEN = "And what about Bergen?"
ACCOUNT = {"chatgpt-account-id": "account-1"}
ENCRYPTED: Body = {"include": ["reasoning.encrypted_content"]}
STATELESS: dict[str, Any] = {**ENCRYPTED, "store": False}
CODEX: dict[str, Any] = {**STATELESS, "instructions": "Be brief.", "reasoning": {"effort": "low"}}


def post(referee: Referee, host: str, content: Body, *, path: str = "", key: str | None = "test-key") -> Got:
    """A request at a host's usual place, or at another path."""
    place = path or f"{referee.base_url(host).removeprefix(referee.url)}/responses"
    return send(referee, "POST", place, json.dumps(content).encode(), ACCOUNT, key)


def known(*texts: str) -> str:
    return "; ".join(KNOWN.format(word=code_word(text)) for text in texts)


class Talk:
    """The official client in a conversation with a tool: sends back all items as they came, but for some fields."""

    def __init__(
        self, referee: Referee, host: str, model: str, *, drop: tuple[str, ...] = (), **parameters: Any
    ) -> None:
        self.url = referee.base_url(host)
        self.parameters = {"model": model, "tools": [WEATHER], **parameters}
        self.drop = set(drop)
        self.items: list[Any] = []

    def ask(self, text: str) -> str:
        """One turn, run to its end; the final text."""
        self.items.append({"role": "user", "content": text})
        while True:
            output = self.output()
            self.items += [item.model_dump(exclude_none=True, exclude=self.drop) for item in output]
            calls = [item for item in output if item.type == "function_call"]
            if not calls:
                return str(output[-1].content[0].text)
            results = [{"type": "function_call_output", "call_id": call.call_id, "output": "rain"} for call in calls]
            self.items += results

    def output(self) -> list[Any]:
        """The items of the next response, of a stream those that ended one by one."""
        with openai.OpenAI(base_url=self.url, api_key="k", max_retries=0, default_headers=ACCOUNT) as client:
            response: Any = client.responses.create(input=self.items, **self.parameters)
            if not self.parameters.get("stream"):
                return list(response.output)
            return [event.item for event in response if event.type == "response.output_item.done"]


@pytest.fixture
def client(referee: Referee) -> Iterator[Any]:
    """The official client of OpenAI, whose types do not know every request made here."""
    with openai.OpenAI(base_url=referee.base_url("openai"), api_key="k", max_retries=0) as made:
        yield made


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("host", "model", "parameters", "remembered"),
    [
        ("openai", "gpt-5", STATELESS, [BERGEN]),
        ("openai", "gpt-5", {}, [BERGEN]),
        ("openai", "gpt-5.5", {**STATELESS, "reasoning": {"context": "all_turns"}}, [OSLO, BERGEN]),
        ("openai", "gpt-5.6-sol", {**STATELESS, "reasoning": {"summary": "auto"}}, [OSLO, BERGEN]),
        ("azure", "gpt-5-mini", {**STATELESS, "drop": ("status",)}, [BERGEN]),
        ("xai", "grok-4.3", STATELESS, [OSLO, BERGEN]),
        ("meta", "muse-spark-1.3", STATELESS, [OSLO, BERGEN]),
        ("openrouter", "openai/gpt-6-sol", {}, [OSLO, BERGEN]),
        ("openrouter", "openai/gpt-oss-20b", {}, [BERGEN]),
        ("deepseek", "deepseek-v4-pro", {}, [BERGEN]),
        ("lmstudio", "openai/gpt-oss-20b", {}, [BERGEN]),
    ],
)
def test_the_official_client_is_remembered(
    referee: Referee, stream: bool, host: str, model: str, parameters: dict[str, Any], remembered: list[str]
) -> None:
    """In a conversation with tools the model names the code words of the reasoning that its host shows it."""
    talk = Talk(referee, host, model, stream=stream, **parameters)
    assert f"Here is what I found: get_weather: rain; {known(OSLO)}." == talk.ask(OSLO)
    assert f"Here is what I found: get_weather: rain; {known(*remembered)}." == talk.ask(BERGEN)
    assert {200} == {exchange.status for exchange in referee.requests}


def test_the_backend_of_chatgpt_streams_to_an_account(referee: Referee) -> None:
    """With instructions, an account and without store the conversation goes as elsewhere."""
    talk = Talk(referee, "codex", "gpt-5.4", stream=True, **CODEX)
    assert talk.ask(OSLO).endswith(f"{known(OSLO)}.")
    assert talk.ask(BERGEN).endswith(f"{known(BERGEN)}.")
    assert 401 == send(referee, "POST", "/codex/backend-api/codex/responses", b"{}").status


def test_a_client_that_drops_its_reasoning_is_forgotten(referee: Referee) -> None:
    """Items without ids may come back alone, and the model admits that its notes are lost."""
    talk = Talk(referee, "openai", "gpt-5", drop=("id",), **STATELESS)
    talk.items = [{"role": "user", "content": OSLO}]
    call = talk.output()[-1].model_dump(exclude_none=True, exclude={"id"})
    talk.items += [call, {"type": "function_call_output", "call_id": call["call_id"], "output": "rain"}]
    assert LOST in talk.output()[-1].content[0].text


def test_a_stored_response_is_continued_seen_and_deleted(client: Any) -> None:
    """previous_response_id continues it until it is deleted; encrypted content cannot be asked of it."""
    first = client.responses.create(model="gpt-5", input=OSLO, tools=[WEATHER])
    result = {"type": "function_call_output", "call_id": first.output[-1].call_id, "output": "rain"}
    more = {"model": "gpt-5", "input": [result], "tools": [WEATHER], "previous_response_id": first.id}
    assert client.responses.create(**more).output_text.endswith(f"{known(OSLO)}.")
    assert first.id == client.responses.retrieve(first.id).id
    with pytest.raises(openai.BadRequestError, match="Encrypted content cannot be requested for persisted responses"):
        client.responses.retrieve(first.id, include=["reasoning.encrypted_content"])
    client.responses.delete(first.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(first.id)
    with pytest.raises(openai.BadRequestError, match=f"Previous response with id '{first.id}' not found."):
        client.responses.create(**more)


@pytest.mark.parametrize("host", [name for name, host in HOSTS.items() if host.keys])
@pytest.mark.parametrize("key", [None, "", BAD_KEY])
def test_a_missing_or_bad_key_is_refused(referee: Referee, host: str, key: str | None) -> None:
    """Each host says so with its own status and text."""
    got = post(referee, host, {"model": models_of(host)[0], "input": "hi"}, key=key)
    status, text, _ = HOSTS[host].unauthorized
    assert (status, "unauthorized", True) == (got.status, got.headers["x-referee"], text in got.data.decode())


def test_a_local_server_wants_no_key(referee: Referee) -> None:
    """LM Studio answers anybody."""
    assert 200 == post(referee, "lmstudio", {"model": "openai/gpt-oss-20b", "input": "hi"}, key=None).status


def test_azure_takes_its_own_header_and_wants_a_version_at_its_old_path(referee: Referee) -> None:
    """api-key opens the door; the path without a version in it needs one in the query."""
    data = json.dumps({"model": "gpt-5-mini", "input": "hi"}).encode()
    statuses = [
        send(referee, "POST", f"/azure/openai{path}", data, {"api-key": "k"}, None).status
        for path in ("/v1/responses", "/responses", "/responses?api-version=preview", "/other")
    ]
    assert [200, 400, 200, 404] == statuses
    assert "api-key" not in referee.requests[0].headers


@pytest.mark.parametrize("host", HOSTS)
def test_models_are_listed(referee: Referee, host: str) -> None:
    """Every host names the models that it serves."""
    path = f"{referee.base_url(host).removeprefix(referee.url)}/models"
    listed = [as_object(entry)["id"] for entry in as_list(send(referee, "GET", path, headers=ACCOUNT).json["data"])]
    assert listed
    if host not in ("openai", "deepseek", "openrouter"):  # there, chat completions answer
        assert models_of(host) == listed


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"{", "invalid JSON"),
        (b"[]", "body is not an object"),
        (b"{}", "no model"),
        (b'{"model":"gpt-5","stream":"yes"}', "bad stream"),
    ],
)
def test_a_body_that_is_no_request_is_refused(referee: Referee, data: bytes, reason: str) -> None:
    """Broken JSON and bodies without a model get 400."""
    got = send(referee, "POST", "/openai/v1/responses", data)
    assert (400, reason) == (got.status, got.headers["x-referee"])


def test_other_methods_and_paths_are_unknown(referee: Referee) -> None:
    """Responses are posted, and seen or deleted by id."""
    assert 404 == send(referee, "GET", "/openai/v1/responses").status
    assert 404 == send(referee, "POST", "/xai/v1/models").status
    stored = post(referee, "openai", {"model": "gpt-5", "input": "hi"}).json["id"]
    assert 404 == send(referee, "POST", f"/openai/v1/responses/{stored}").status


def test_errors_come_as_events_and_streams_may_lack_their_end(referee: Referee) -> None:
    """An error has its own event; without an end the last event is missing."""
    referee.push(Step(text="hi", fault=ErrorInStream("overloaded")), Step(text="hi", fault=NoDone()))
    broken, cut = (post(referee, "openai", {"model": "gpt-5", "input": "hi", "stream": True}) for _ in range(2))
    assert {"type": "error", "code": "server_error", "message": "overloaded", "param": None} == {
        name: value for name, value in json.loads(broken.events[-1]).items() if name != "sequence_number"
    }
    assert "response.output_item.done" == json.loads(cut.events[-1])["type"]


def test_genuine_content_can_be_rejected(referee: Referee) -> None:
    """The scripted refusal is E4, with the status and code that the client's repair looks for."""
    talk = Talk(referee, "openai", "gpt-5", **STATELESS)
    talk.ask(OSLO)
    referee.push(Step(fault=RejectCarrier()))
    with pytest.raises(openai.BadRequestError, match="could not be verified") as caught:
        talk.ask(BERGEN)
    assert "invalid_encrypted_content" == caught.value.code


TOOL: Body = {"type": "function", "function": {"name": "get_weather", "parameters": {}}}


@pytest.mark.parametrize(
    ("model", "change", "message"),
    [
        ("gpt-5", {"messages": [{"role": "assistant", "content": "x", "reasoning_content": "y"}]},
         "Unknown parameter: 'messages[0].reasoning_content'."),
        ("gpt-5", {"messages": [{"role": "assistant", "content": "x", "reasoning_details": []}]},
         "Unknown parameter: 'messages[0].reasoning_details'."),
        ("gpt-5.6-sol", {"tools": [TOOL]},
         "Function tools with reasoning_effort are not supported for gpt-5.6-sol in /v1/chat/completions. To use "
         "function tools, use /v1/responses or set reasoning_effort to 'none'."),
        ("gpt-5.6-sol", {"tools": [TOOL], "reasoning_effort": "none"}, ""),
        ("gpt-5.4", {"tools": [TOOL]}, ""),
        ("gpt-5", {"tools": [TOOL], "reasoning_effort": "low"}, ""),
        ("gpt-5", {"reasoning": {"effort": "low"}}, "Unknown parameter: 'reasoning'."),
        ("gpt-5", {"temperature": 0},
         "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is "
         "supported."),
        ("gpt-5", {"reasoning_effort": "max"},
         "Unsupported value: 'reasoning_effort' does not support 'max' with this model, supported values: [minimal, "
         "low, medium, high]."),
    ],
)  # fmt: skip
def test_chat_completions_of_openai_know_no_reasoning(referee: Referee, model: str, change: Body, message: str) -> None:
    """No field carries any in either direction, and late models call no functions while they reason."""
    body: Body = {"model": model, "messages": [{"role": "user", "content": "hi"}], **change}
    got = send(referee, "POST", "/openai/v1/chat/completions", json.dumps(body).encode())
    error = as_object(got.json.get("error"))
    assert (400 if message else 200, message) == (got.status, error.get("message", ""))


def test_chat_completions_of_openai_think_in_silence(referee: Referee) -> None:
    """The usage counts what no field shows; in a stream it comes only where it is asked for."""
    messages = [{"role": "user", "content": "hi"}]
    for options, expected in (({}, 0), ({"stream_options": {"include_usage": True}}, 1)):
        referee.push(Step(reasoning="one two", text="three"), Step(reasoning="one two", text="three"))
        body: Body = {"model": "gpt-5", "messages": messages}
        whole = send(referee, "POST", "/openai/v1/chat/completions", json.dumps(body).encode())
        assert {"role": "assistant", "content": "three"} == whole.message
        usage = as_object(whole.json["usage"])
        assert {"reasoning_tokens": 2} == usage["completion_tokens_details"]
        streamed = json.dumps({**body, "stream": True, **options}).encode()
        chunks = send(referee, "POST", "/openai/v1/chat/completions", streamed).chunks
        assert expected == sum("usage" in chunk for chunk in chunks)
