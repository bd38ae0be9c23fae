"""The openai and anthropic packages, unpatched, through a gateway in its own process, judged by the referee."""

from __future__ import annotations

import http.client
import json
import sys
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import urlsplit

import pytest

from bench.gateway_clients import with_anthropic, with_openai
from bench.gateway_clients.gateway import Gateway, serving
from bench.gateway_clients.holding import PROMPTS, Held, hold
from bench.gateway_clients.job import Job, Script
from bench.gateway_clients.page import Judged
from bench.gateway_clients.places import ALIASES, PLACES
from bench.gateway_clients.process import Worker
from thinkback_referee import Referee

SCRIPTS = {script.name: script for script in (with_openai.CHAT, with_openai.RESPONSES, with_anthropic.MESSAGES)}
MODES = [(name, mode) for name, script in SCRIPTS.items() for mode in script.modes]
HOMES = {"openai chat": "DeepSeek chat", "openai Responses": "OpenAI Responses", "anthropic": "Anthropic 5.5"}
# Every mode at home; abroad those that differ in what comes back of a response.
TRAVELS = frozenset({"sync", "streamed", "rebuilt", "raw stream", "store=False", "previous_response_id"})
ABROAD = {"openai chat": "Anthropic 5.5", "openai Responses": "Gemini", "anthropic": "Kimi chat"}


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


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    """A process for clients."""
    with closing(Worker([sys.executable, "-m", "bench.gateway_clients.worker"], 60)) as found:
        yield found


def talk(gateway: Gateway, judge: Referee, worker: Worker, script: Script, mode: str, name: str) -> Held:
    """A conversation through the gateway with a key of its own."""
    place = PLACES[name]
    base, key = gateway.base_url(script.front), gateway.key(f"{script.name} {mode} {name}")
    job = Job(script.name, mode, base, key, ALIASES[name], "", list(PROMPTS))
    return hold(worker, judge, job, place, True)


@pytest.mark.parametrize(("name", "mode"), MODES)
def test_client_is_served_by_the_provider_of_its_dialect(
    gateway: Gateway, judge: Referee, worker: Worker, name: str, mode: str
) -> None:
    """Three turns of tool calls: nothing is refused, nothing forgotten, and it reads what the model said."""
    found = talk(gateway, judge, worker, SCRIPTS[name], mode, HOMES[name])
    assert ("ok", found.outcome) == (Judged([found]).word(found), found.outcome)


@pytest.mark.parametrize(("name", "mode"), [each for each in MODES if each[1] in TRAVELS])
def test_client_is_served_by_a_provider_of_another_dialect(
    gateway: Gateway, judge: Referee, worker: Worker, name: str, mode: str
) -> None:
    """The same where every request and response is translated."""
    found = talk(gateway, judge, worker, SCRIPTS[name], mode, ABROAD[name])
    assert ("ok", found.outcome) == (Judged([found]).word(found), found.outcome)


def asked(gateway: Gateway, path: str, body: dict[str, object]) -> tuple[http.client.HTTPMessage, bytes]:
    """Headers and body of a response."""
    where = urlsplit(gateway.url)
    with closing(http.client.HTTPConnection(where.hostname or "", where.port, timeout=60)) as connection:
        headers = {"authorization": f"Bearer {gateway.key('raw')}", "content-type": "application/json"}
        connection.request("POST", path, json.dumps(body), headers)
        response = connection.getresponse()
        return response.headers, response.read()


def test_document_says_its_length_once(gateway: Gateway) -> None:
    """Strict clients refuse a header that comes twice."""
    headers, body = asked(gateway, "/v1/responses", {"model": ALIASES["DeepSeek chat"], "input": "Hello."})
    assert [str(len(body))] == headers.get_all("content-length")


def test_events_of_a_stream_are_numbered_in_their_order(gateway: Gateway) -> None:
    """The first event is written first, and knows nothing of what comes after it."""
    request = {"model": ALIASES["DeepSeek chat"], "input": "Hello.", "stream": True}
    _, body = asked(gateway, "/v1/responses", request)
    events = [json.loads(line[6:]) for line in body.decode().splitlines() if line.startswith("data: ")]
    assert list(range(len(events))) == [event["sequence_number"] for event in events]
    assert [] == events[0]["response"]["output"]
