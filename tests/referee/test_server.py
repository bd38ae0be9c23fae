"""The referee as a server: routes, keys, what it records, and that it leaves nothing open."""

from __future__ import annotations

import dataclasses
import http.client
import json
import queue
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.referee.talk import WEATHER, Client, body, post, result, said, send, threads, user
from thinkback_referee import BAD_KEY, CutAfterBytes, Exchange, HttpError, Referee, Step, serve
from thinkback_referee import HOSTS as PLAYED
from thinkback_referee import models_of as all_models_of
from thinkback_referee.chat import CHAT
from thinkback_referee.chat.profiles import HOSTS, models_of
from thinkback_referee.jsons import as_list, as_object

HI = body("deepseek-v4-pro", user("hi"))


def test_it_answers_under_the_paths_that_clients_use(referee: Referee) -> None:
    """Base URLs with and without a version work, others get 404."""
    statuses = [post(referee, "deepseek", HI, prefix=prefix).status for prefix in ("", "/v1", "/openai/v1", "/v9")]
    assert [200, 200, 200, 404] == statuses
    assert 404 == post(referee, "nobody", HI).status
    assert f"{referee.url}/kimi" == referee.base_url("kimi")


def test_it_says_that_it_is_alive(referee: Referee) -> None:
    """GET /healthz needs no key."""
    got = send(referee, "GET", "/healthz", key=None)
    assert (200, {"status": "ok"}) == (got.status, got.json)


@pytest.mark.parametrize("host", HOSTS)
def test_it_lists_the_models_of_a_host(referee: Referee, host: str) -> None:
    """GET models gives the names that the host serves."""
    got = send(referee, "GET", f"/{host}/models")
    assert models_of(host) == [as_object(entry)["id"] for entry in as_list(got.json["data"])]
    assert 401 == send(referee, "GET", f"/{host}/v1/models", key=BAD_KEY).status


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("key", [None, "", BAD_KEY])
def test_a_missing_or_bad_key_is_refused(referee: Referee, host: str, key: str | None) -> None:
    """Any other key is good; these get 401 with the host's text."""
    got = post(referee, host, body(models_of(host)[0], user("hi")), key=key)
    assert (401, True) == (got.status, HOSTS[host].unauthorized[0] in got.data.decode())
    assert "unauthorized" == got.headers["x-referee"]


@pytest.mark.parametrize("host", HOSTS)
def test_an_unknown_model_is_refused(referee: Referee, host: str) -> None:
    """A model of no row gets 404 with its name in the host's text."""
    got = post(referee, host, body("gpt-none", user("hi")))
    assert (404, True) == (got.status, "gpt-none" in got.data.decode())


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"{", "invalid JSON"),
        (b"\xff", "invalid JSON"),
        (b'{"model":"deepseek-v4-pro","model":"x"}', "invalid JSON"),
        (b'{"model":NaN}', "invalid JSON"),
        (b"[" * 100_000, "invalid JSON"),
        (b"[]", "body is not an object"),
        (b"{}", "no model"),
    ],
)
def test_a_body_that_is_no_request_is_refused(referee: Referee, data: bytes, reason: str) -> None:
    """Broken JSON, duplicate keys and bodies without a model get 400, and are recorded with their bytes."""
    got = send(referee, "POST", "/deepseek/chat/completions", data)
    assert (400, reason) == (got.status, got.headers["x-referee"])
    assert data == referee.requests[0].raw


def test_what_arrived_is_recorded_without_keys(referee: Referee) -> None:
    """An exchange has path, headers without secrets, bytes, body, verdict and answer."""
    headers = {"X-Mark": "7", "X-Api-Key": "secret", "Cookie": "secret"}
    send(referee, "POST", "/deepseek/v1/chat/completions?x=1", json.dumps(HI).encode(), headers)
    [exchange] = referee.requests
    assert ("/deepseek/v1/chat/completions?x=1", HI, json.dumps(HI).encode()) == (
        exchange.path,
        exchange.body,
        exchange.raw,
    )
    assert ("7", False) == (exchange.headers["x-mark"], "secret" in str(exchange.headers))
    assert not {"authorization", "x-api-key", "cookie"} & exchange.headers.keys()
    assert ("deepseek", "deepseek-v4-pro", 200, True) == (
        exchange.host,
        exchange.model,
        exchange.status,
        exchange.verdict.ok,
    )
    assert exchange.step is not None


def test_keys_in_a_query_are_not_recorded(referee: Referee) -> None:
    """What stands behind key= in a path is a secret like a header, also in the answer to an unknown path."""
    send(referee, "POST", "/deepseek/chat/completions?key=secret&x=1", json.dumps(HI).encode())
    assert "/deepseek/chat/completions?key=…&x=1" == referee.requests[0].path
    assert b"secret" not in send(referee, "GET", "/nobody?x=1&key=secret").data


def test_hosts_know_their_base_urls_and_models(referee: Referee) -> None:
    """A host that speaks several formats has the base URL of the first, and the models of all."""
    assert {host: referee.base_url(host).removeprefix(referee.url) for host in PLAYED} == PLAYED
    assert ("/deepseek", "/openai/v1") == (PLAYED["deepseek"], PLAYED["openai"])
    assert {"gpt-4o", "gpt-5.3-codex"} <= set(all_models_of("openai"))
    assert [] == all_models_of("nobody")


def test_the_personas_are_at_hand(referee: Referee) -> None:
    """Tests may look into what a persona minted; one that is not played is an error."""
    assert referee.persona(CHAT).ledger is referee.ledger
    with pytest.raises(LookupError, match="does not play nobody"):
        referee.persona(dataclasses.replace(CHAT, hosts={"nobody": ""}))


def test_refusals_say_why_in_a_header(referee: Referee) -> None:
    """The referee's own reason is beside the provider's text, also when it is not ASCII."""
    got = post(referee, "deepseek", body("deepseek-v4-pro", {**user("hi"), "gedächtnis\n": 1}))
    assert (400, "unknown field ged\\xe4chtnis  at messages[0]") == (got.status, got.headers["x-referee"])
    assert "unknown field" in referee.requests[0].verdict.reason


def test_altered_reasoning_is_refused_over_the_wire(referee: Referee) -> None:
    """What the server itself minted must come back unaltered."""
    talking = Client(referee, "deepseek", {"model": "deepseek-v4-pro", "tools": [WEATHER]}, [])
    talking.ask("Weather in Oslo?")
    thought = str(talking.messages[1]["reasoning_content"])
    talking.messages[1] = {**talking.messages[1], "reasoning_content": thought.replace("amber", "umber") + " "}
    got = post(referee, "deepseek", body("deepseek-v4-pro", *talking.messages, user("on"), tools=[WEATHER]))
    assert (400, "changed at messages[1]") == (got.status, got.headers["x-referee"])


def test_steps_are_consumed_in_order_by_accepted_requests() -> None:
    """A refused request leaves the script alone, and after the last step the house script answers."""
    with Referee([Step(text="one")]) as referee:
        referee.push(Step(text="two"))
        assert (400, 2) == (post(referee, "kimi", body("kimi-k3")).status, referee.unused)
        texts = [post(referee, "kimi", body("kimi-k3", user("hi"))).message["content"] for _ in range(3)]
    assert ["one", "two", 'You said: "hi".'] == texts


def test_reset_forgets_everything(referee: Referee) -> None:
    """After reset there are no requests, no steps and no mints."""
    post(referee, "kimi", body("kimi-k3", user("hi")))
    referee.push(Step(fault=HttpError(500)))
    referee.reset()
    assert ([], 0) == (referee.requests, referee.unused)
    messages = [user("hi"), said("", "c1", reasoning_content="x"), result("c1")]
    assert 200 == post(referee, "kimi", body("kimi-k3", *messages)).status


def test_a_connection_serves_many_requests_with_chunked_bodies(referee: Referee) -> None:
    """Requests may come in fragments, one after another on one connection."""
    connection = http.client.HTTPConnection(referee.url.removeprefix("http://"), timeout=20)
    data = json.dumps(HI).encode()
    for _ in range(3):
        headers = {"Authorization": "Bearer k", "Transfer-Encoding": "chunked"}
        fragments = iter([data[:5], data[5:]])
        connection.request("POST", "/deepseek/chat/completions", fragments, headers, encode_chunked=True)
        response = connection.getresponse()
        assert (200, True) == (response.status, response.read().endswith(b"}"))
    connection.close()
    assert [data] * 3 == [exchange.raw for exchange in referee.requests]


@pytest.mark.parametrize("length", ["-1", "nonsense", "999999999999"])
def test_a_body_length_that_cannot_be_is_refused(referee: Referee, length: str) -> None:
    """A length that is no sensible number gets 400 before anything is read."""
    got = send(referee, "POST", "/deepseek/chat/completions", b"", {"Content-Length": length})
    assert 400 == got.status


def test_requests_in_parallel_are_all_answered_and_recorded(referee: Referee) -> None:
    """Many clients at once lose nothing."""
    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda _: post(referee, "deepseek", HI).status, range(40)))
    assert ([200] * 40, 40) == (statuses, len(referee.requests))


def test_a_client_that_goes_away_is_no_trouble() -> None:
    """Half a request, or a request whose answer nobody reads, leaves the referee working."""
    with Referee([Step(text="word " * 20_000)]) as referee:
        for length in ("100", "10"):
            connection = http.client.HTTPConnection(referee.url.removeprefix("http://"), timeout=20)
            connection.putrequest("POST", "/deepseek/chat/completions")
            connection.putheader("Content-Length", length)
            connection.endheaders(b"0123456789")
            connection.close()
        connection = http.client.HTTPConnection(referee.url.removeprefix("http://"), timeout=20)
        data = json.dumps({**HI, "stream": True}).encode()
        connection.request("POST", "/deepseek/chat/completions", data, {"Authorization": "Bearer k"})
        connection.close()
        assert 200 == send(referee, "GET", "/healthz").status


def test_an_idle_connection_does_not_hold_up_closing() -> None:
    """Closing breaks kept-alive connections and ends their threads."""
    before = threads()
    with Referee() as referee:
        connection = http.client.HTTPConnection(referee.url.removeprefix("http://"), timeout=20)
        connection.request("GET", "/healthz")
        connection.getresponse().read()
        assert threads() > before
    assert before == threads()
    connection.close()


def test_it_has_an_address_only_while_it_serves() -> None:
    """The address is asked of a serving referee; starting and closing twice are harmless."""
    referee = Referee()
    with pytest.raises(RuntimeError, match="not serving"):
        _ = referee.url
    with referee:
        referee.start()
        with pytest.raises(ValueError, match="unknown persona 'nobody'"):
            referee.base_url("nobody")
    referee.close()


def test_serve_runs_until_it_is_stopped() -> None:
    """The blocking form calls ready once and report for every exchange, and returns when stopped."""
    stop, seen = threading.Event(), list[Exchange]()
    statuses: list[int] = []

    def ready(referee: Referee) -> None:
        def talk() -> None:
            statuses.append(post(referee, "kimi", body("kimi-k3", user("hi"))).status)
            stop.set()

        talker = threading.Thread(target=talk)
        talker.start()
        talkers.append(talker)

    talkers: list[threading.Thread] = []
    serve(port=0, report=seen.append, ready=ready, stop=stop)
    talkers[0].join()
    assert ([200], ["kimi"]) == (statuses, [exchange.host for exchange in seen])


def test_it_says_when_an_answer_is_written_and_whether_all_of_it() -> None:
    """Behind the last byte; a cut, too, is an end."""
    ends: queue.Queue[tuple[str, bool]] = queue.Queue()
    script = [Step(text="one"), Step(text="two", fault=CutAfterBytes(5))]
    with Referee(script, ended=lambda exchange, whole: ends.put((exchange.host, whole))) as referee:
        post(referee, "deepseek", HI)
        assert ("deepseek", True) == ends.get(timeout=5)
        with pytest.raises(http.client.IncompleteRead):
            post(referee, "deepseek", HI)
        assert ("deepseek", False) == ends.get(timeout=5)


class Interrupted(threading.Event):
    """An event whose wait is broken off by the user."""

    def wait(self, timeout: float | None = None) -> bool:
        raise KeyboardInterrupt


def test_serve_ends_quietly_on_an_interrupt() -> None:
    """Ctrl-C closes the referee and returns."""
    addresses: list[str] = []
    serve(port=0, ready=lambda referee: addresses.append(referee.url), stop=Interrupted())
    assert 1 == len(addresses)


def test_half_a_character_is_refused_and_harms_nothing(referee: Referee) -> None:
    """A lone surrogate is no Unicode text: 400, and the next request is served."""
    body = {"model": "deepseek-v4-pro", "messages": [{"role": "user", "content": "a \ud800"}]}
    assert 400 == send(referee, "POST", "/deepseek/chat/completions", json.dumps(body).encode()).status
    body["messages"] = [{"role": "user", "content": "a"}]
    assert 200 == send(referee, "POST", "/deepseek/chat/completions", json.dumps(body).encode()).status
