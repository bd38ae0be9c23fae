"""What clients get over HTTP is what the public types of their dialect say, strictly: four fronts, five upstreams."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import pytest

from bench.gateway_clients.gateway import Gateway, serving
from bench.gateway_clients.places import ALIASES, FRONTS, PLACES, front_of
from tests.public_types import faults, faults_of_stream
from thinkback_referee import Referee

UPSTREAMS = ("DeepSeek chat", "Anthropic 5.5", "OpenAI Responses", "Gemini", "OpenRouter chat")
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
IMAGE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
KINDS = ("text", "string", "system", "turns", "tool", "image", "reasoning")


def responses(kind: str) -> dict[str, Any]:
    """A request of the Responses API of that kind."""
    said: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "input_text", "text": "What is up?"}]}]
    tool = {"type": "function", "name": "weather", "description": "The weather of a city", "parameters": SCHEMA}
    match kind:
        case "string":
            return {"input": "What is up?"}
        case "system":
            return {"input": said, "instructions": "Be brief."}
        case "turns":
            return {"input": [*said, {"role": "assistant", "content": "The sky."}, said[0]]}
        case "tool":
            return {"input": "What is the weather in Oslo?", "tools": [tool]}
        case "image":
            image = {"type": "input_image", "image_url": f"data:image/png;base64,{IMAGE}", "detail": "auto"}
            return {"input": [{"role": "user", "content": [*said[0]["content"], image]}]}
        case "reasoning":
            wanted = {"effort": "high", "summary": "auto"}
            return {"input": said, "reasoning": wanted, "include": ["reasoning.encrypted_content"], "store": False}
        case _:
            return {"input": said}


def messages(front: str, kind: str) -> dict[str, Any]:
    """The same of the other three."""
    asked = "What is the weather in Oslo?" if kind == "tool" else "What is up?"
    function = {"name": "weather", "description": "The weather of a city"}
    if front == "gemini":
        declared = {"functionDeclarations": [{**function, "parameters": SCHEMA}]}
        thinking = {"thinkingConfig": {"includeThoughts": True}}
        said = {"contents": [{"role": "user", "parts": [{"text": asked}]}]}
        return {**said, "tools": [declared]} if kind == "tool" else {**said, "generationConfig": thinking}
    tool = {"type": "function", "function": {**function, "parameters": SCHEMA}}
    tool = tool if front == "openai-chat" else {**function, "input_schema": SCHEMA}
    more: dict[str, Any] = {"tools": [tool]} if kind == "tool" else {}
    if front == "anthropic":
        more |= {"max_tokens": 4000, "thinking": {"type": "enabled", "budget_tokens": 2000}}
    return {"messages": [{"role": "user", "content": asked}], **more}


REQUESTS = {front: {kind: messages(front, kind) for kind in ("text", "tool")} for front in FRONTS}
REQUESTS["openai-responses"] = {kind: responses(kind) for kind in KINDS}
PATHS = {"openai-chat": "/v1/chat/completions", "openai-responses": "/v1/responses", "anthropic": "/v1/messages"}


@pytest.fixture(scope="module")
def judge() -> Iterator[Referee]:
    """One referee for all."""
    with Referee() as referee:
        yield referee


@pytest.fixture(scope="module")
def gateway(judge: Referee, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """``thinkback gateway`` before the referee."""
    with serving(tmp_path_factory.mktemp("gateway"), judge) as found:
        yield found


def answer(url: str, path: str, key: str, body: dict[str, Any]) -> tuple[int, bytes]:
    """Status and body of a response."""
    where = urlsplit(url)
    with closing(http.client.HTTPConnection(where.hostname or "", where.port, timeout=60)) as connection:
        headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
        connection.request("POST", path, json.dumps(body).encode(), headers)
        response = connection.getresponse()
        return response.status, response.read()


def faults_over_http(gateway: Gateway, front: str, name: str, key: str, asked: dict[str, Any]) -> list[str]:
    """What the response of the place ``name`` has against its types, whole and streamed."""
    found, model, own = [], ALIASES[name], front_of(PLACES[name]) == front
    for streams in (False, True):
        if front == "gemini":
            way = "streamGenerateContent?alt=sse" if streams else "generateContent"
            path, body = f"/v1beta/models/{model}:{way}", asked
        else:
            path, body = PATHS[front], {**asked, "model": model, "stream": streams}
        status, said = answer(gateway.url, path, key, body)
        assert 200 == status, said
        found += (faults_of_stream if streams else faults)(front, said, own=own)
    return found


@pytest.mark.parametrize(("front", "kind"), [(front, kind) for front in FRONTS for kind in REQUESTS[front]])
def test_a_client_gets_what_the_types_of_its_dialect_say(gateway: Gateway, front: str, kind: str) -> None:
    """Whole and streamed, from every upstream: nothing is missing, all is of its type, and none of it made up."""
    key = gateway.key(f"{front} {kind}")
    # DeepSeek's chat takes no images.
    upstreams = [name for name in UPSTREAMS if (name, kind) != ("DeepSeek chat", "image")]

    found = {n: faults_over_http(gateway, front, n, key, REQUESTS[front][kind]) for n in upstreams}
    assert {name: [] for name in upstreams} == found


@pytest.mark.parametrize("kind", KINDS)
def test_the_referee_speaks_as_the_specification_says(judge: Referee, kind: str) -> None:
    """A stand-in for OpenAI that left members out would prove nothing of those who pass its bytes on."""
    url = judge.base_url("openai").removesuffix("/v1")
    where = urlsplit(url)
    base = f"{where.scheme}://{where.netloc}"
    for streams in (False, True):
        body = {**responses(kind), "model": "gpt-5.6", "stream": streams}
        status, said = answer(base, f"{where.path}/v1/responses", "sk-any", body)

        found = (faults_of_stream if streams else faults)("openai-responses", said, own=True)
        assert (200, []) == (status, found)
