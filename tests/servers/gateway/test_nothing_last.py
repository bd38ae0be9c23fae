"""Nothing of the gateway's own stands last, over HTTP: every front before every provider, whole and streamed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from bench.gateway_clients.gateway import Gateway, serving
from bench.gateway_clients.places import ALIASES, FRONTS, PLACES
from tests.servers.gateway.test_public_types import PATHS, answer, messages, responses
from tests.wire.test_nothing_last import last_of_document, last_of_stream
from thinkback_referee import Referee

ASKED = {"text": "text", "tool": "call"}
# Google itself ends in an empty text with a signature, which is passed on.
OWN = {"gemini": frozenset({"Gemini", "Vertex Gemini"})}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """``thinkback gateway`` before the referee."""
    with Referee() as referee, serving(tmp_path_factory.mktemp("gateway"), referee) as found:
        yield found


def asked(front: str, kind: str, model: str, streams: bool) -> tuple[str, dict[str, Any]]:
    """Path and body of a request of that kind."""
    if front == "gemini":
        way = "streamGenerateContent?alt=sse" if streams else "generateContent"
        return f"/v1beta/models/{model}:{way}", messages(front, kind)
    body = responses(kind) if front == "openai-responses" else messages(front, kind)
    return PATHS[front], {**body, "model": model, "stream": streams}


@pytest.mark.parametrize("front", FRONTS)
@pytest.mark.parametrize("kind", ASKED)
def test_a_client_sees_last_what_the_model_said_last(gateway: Gateway, front: str, kind: str) -> None:
    """An answer ends in its text and a step of a tool loop in its call, from all providers."""
    key = gateway.key(f"{front} {kind}")
    seen: dict[str, list[str]] = {}
    names = [name for name in PLACES if name not in OWN.get(front, ())]
    for name in names:
        for streams in (False, True):
            status, body = answer(gateway.url, *_with(key, *asked(front, kind, ALIASES[name], streams)))
            assert 200 == status, (name, body)
            last = last_of_stream if streams else last_of_document
            # a whole chat completion has fields, and no order
            is_told = streams or front != "openai-chat"
            seen.setdefault(name, []).append(last(front, body) if is_told else ASKED[kind])

    assert {name: [ASKED[kind]] * 2 for name in names} == seen


def _with(key: str, path: str, body: dict[str, Any]) -> tuple[str, str, dict[str, Any]]:
    return path, key, json.loads(json.dumps(body))
