"""Requests of every shape at a whole gateway, with upstreams that fail in every way: answered or refused, never broken.

No failure is the gateway's own, nothing of what is behind it is told, and the next client is served.
"""

from __future__ import annotations

import gc
import json
import os
import random
import resource
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import schemathesis
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.conformance.fronts import FRONTS
from tests.servers.gateway.harness.engines import GRANT, Kept, Plays, ask, engine
from tests.servers.gateway.harness.mutations import mutated, written
from tests.servers.gateway.harness.running import Reply, Running, read_all, running
from tests.servers.gateway.harness.unreliable import SECRET, WAYS, unreliable
from thinkback.errors import ThinkbackError
from thinkback.log.echo_digests import echoed_messages
from thinkback.model.blocks import Origin
from thinkback.proxy import client_state, resume
from thinkback.proxy.preserve_json import preserved
from thinkback.proxy.request_view import read_body, read_facts
from thinkback.servers.gateway.access.keys import Terms, new_key
from thinkback.servers.gateway.http.openapi import DESCRIPTION
from thinkback.servers.gateway.secrets.sealing import Sealer
from thinkback.stores.gateway_state import open_gateway_state
from thinkback.wire.registry import dialect

PLACES = {"chat": "deepseek", "anthropic": "anthropic", "gemini": "gemini", "responses": "openai"}
ENDPOINTS = ("deepseek", "anthropic", "openai", "gemini", "mistral", "cohere", "ollama", "openrouter")
PATHS: dict[str, str] = {
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "gemini": "/v1beta/models/{model}:generateContent",
}
SEEDS = st.integers(0, 2**32)
schema = schemathesis.openapi.from_dict(DESCRIPTION)


class House(NamedTuple):
    """A gateway, a key for it, and words that nobody may read."""

    gateway: Running
    key: str
    hidden: tuple[str, ...]

    def ask(self, path: str, body: bytes, **headers: str) -> Reply:
        """One request with the key."""
        return self.gateway.ask(path, body, headers=headers, key=self.key)

    def leaks(self, seen: str) -> list[str]:
        """What stands around each hidden word in ``seen``: the words alone would not say where it came from."""
        return [seen[max(0, seen.index(word) - 500) : seen.index(word) + 5000] for word in self.hidden if word in seen]


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """The whole gateway, with keys, in front of unreliable upstreams of four dialects."""
    place = tmp_path_factory.mktemp("fuzz")
    key_file = place / "key"
    key_file.write_text(SECRET)
    key_file.chmod(0o600)
    office = open_gateway_state(place / "store")
    key, row = new_key(Terms(), 1, name="fuzz")
    office.keys.create(row)
    office.close()
    with unreliable() as url:
        upstreams = {
            name: {"endpoint": endpoint, "base_url": f"{url}/{name}", "key_file": str(key_file)}
            for name, endpoint in PLACES.items()
        }
        with running(
            "thinkback.servers.gateway.running.wiring:open_behind",
            server={"max_body": 4 << 20, "body_timeout": 2, "header_timeout": 2},
            store={"path": str(place / "store")},
            upstreams=upstreams,
            routing={"breaker_failures": 1_000_000},
            logs={"level": "debug"},
        ) as made:
            yield House(made, key, (SECRET, key, str(place), "Traceback", "/srv/secret", url))


@pytest.fixture(autouse=True)
def serves(request: pytest.FixtureRequest) -> Iterator[None]:
    """Whatever was asked, the next client is served."""
    yield
    if "house" in request.fixturenames:
        house: House = request.getfixturevalue("house")
        assert 200 == house.ask(PATHS["openai-chat"], _plain("chat/way-good")).status


def _plain(model: str) -> bytes:
    return json.dumps({"model": model, "messages": [{"role": "user", "content": "Hi"}]}).encode()


def _check(house: House, reply: Reply, dialect: str, logged: str, way: str = "good") -> None:
    """No fault of the gateway's own, nothing told, and an error is one of the client's dialect."""
    assert reply.status < 500 or reply.status in (502, 504) or way == "fails", reply
    seen = logged + reply.body.decode("utf-8", "replace") + repr(dict(reply.headers))
    assert [] == house.leaks(seen)
    if reply.status >= 400:
        error = reply.json["error"]
        assert error["message"]
        assert ("status" in error) == (dialect == "gemini")
        assert (reply.json.get("type") == "error") == (dialect == "anthropic")


def _ask_anything(house: House, seed: int, logged: Callable[[], str]) -> None:
    chance = random.Random(seed)
    spoken: str = chance.choice(list(PATHS))
    way = chance.choice(WAYS)
    model = f"{chance.choice(list(PLACES))}/way-{way}"
    body = mutated(spoken, seed)
    if spoken != "gemini" and body.get("model") == "any":
        body["model"] = model
    data = written(body, seed)
    headers = chance.choice(({}, {}, {"thinkback-set": "reasoning.effort=\xff"}, {"idempotency-key": str(seed)}))
    reply = house.ask(PATHS[spoken].format(model=model), data, **headers)

    _check(house, reply, spoken, logged(), way)


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(seed=SEEDS)
def test_no_request_breaks_the_gateway(house: House, capfd: pytest.CaptureFixture[str], seed: int) -> None:
    """Bodies of real clients with anything in them, at upstreams that fail in any way."""
    _ask_anything(house, seed, lambda: "".join(capfd.readouterr()))


@pytest.mark.soak
def test_many_requests_break_nothing_and_leave_nothing(house: House, capfd: pytest.CaptureFixture[str]) -> None:
    """Ten thousand of them: open files do not grow, and memory no further than caches are large.

    What stays is meant, not what the largest of them took while it was answered: that is bounded by other tests.
    """
    for seed in range(500):
        _ask_anything(house, seed, lambda: "".join(capfd.readouterr()))
    files, memory = len(os.listdir("/proc/self/fd")), _resident()
    for seed in range(500, 10_000):
        _ask_anything(house, seed, lambda: "".join(capfd.readouterr()))

    assert len(os.listdir("/proc/self/fd")) <= files + 16
    assert _resident() <= memory + (400 << 20)


def _resident() -> int:
    """Bytes of memory that this process has."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@schema.parametrize()
@settings(max_examples=3, suppress_health_check=list(HealthCheck))
def test_every_operation_is_for_who_has_a_key(case: Any, house: House, capfd: pytest.CaptureFixture[str]) -> None:
    """With a key there is no failure of the gateway's own; without one nothing is answered but what is for all."""
    if isinstance(case.body, dict) and "model" in case.body:
        case.body["model"] = "anthropic/way-good"
    if case.path_parameters:
        case.path_parameters["model"] = "gemini/way-good"
    base = f"http://127.0.0.1:{house.gateway.port}"
    reply = case.call(base_url=base, timeout=20, headers={"authorization": f"Bearer {house.key}"})
    refused = case.call(base_url=base, timeout=20, headers={"authorization": "Bearer tb-nobody"})

    assert reply.status_code < 500
    assert refused.status_code in (204, 401, 405) or not case.path.startswith(("/v1/", "/v1beta/"))
    assert [] == house.leaks(reply.text + refused.text + "".join(capfd.readouterr()))


NAMES = (
    "", "x", "/", "chat/", "/way-good", "chat/..", "gemini/.", "gemini/../../v1/keys", "gemini/a?key=b#c",
    "gemini/%2e%2e%2f", "chat/\r\nx: y", "chat/\x00", "chat/\ud800", "chat/\u202e\u2603", "chat/way-good\n",
    "http://127.0.0.1/x", "chat/" + "a" * 100_000,
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_the_name_of_a_model_is_a_name(house: House, capfd: pytest.CaptureFixture[str], name: str) -> None:
    """It is neither a path, nor a header, nor a line of the log."""
    reply = house.ask(PATHS["openai-chat"], _plain(name))
    logged = capfd.readouterr().err

    _check(house, reply, "openai-chat", logged)
    assert "\nx: y" not in logged
    assert all(line.startswith("20") for line in logged.splitlines())
    assert 404 == reply.status or not name.endswith(("/..", "/."))


HEAD = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer tb-nobody\r\n"
GET = "GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.mark.parametrize(
    "data",
    [
        HEAD + f"Content-Length: 4\r\nContent-Length: {len(GET)}\r\n\r\n{GET}",
        HEAD + f"Content-Length: 4, 4\r\n\r\n{GET}",
        HEAD + f"Content-Length: +4\r\n\r\n{GET}",
        HEAD + f"Content-Length: {len(GET)}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{GET}",
        HEAD + f"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n{GET}",
        HEAD + f"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n{GET}",
        HEAD + f"Transfer-Encoding: xchunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n{GET}",
        HEAD + f"X-A: b\r\n Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n0\r\n\r\n{GET}",
        HEAD + f"Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n{GET}",
        HEAD + f"Transfer-Encoding: chunked\r\n\r\n-1\r\n{GET}",
        HEAD + f"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n{GET}",
        HEAD + f"Transfer-Encoding: chunked\r\n\r\n0x0\r\n\r\n{GET}",
        HEAD + f"X\x00: a\r\n\r\n{GET}",
        HEAD + f"X-A: a\rX-B: b\r\n\r\n{GET}",
        HEAD.replace("\r\n", "\n") + f"Content-Length: 0\n\n{GET}",
        HEAD.replace("POST", "P\x00ST") + f"\r\n{GET}",
        HEAD.replace("HTTP/1.1", "HTTP/2.0") + f"\r\n{GET}",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + GET,
    ],
)
def test_nothing_is_smuggled_behind_a_request(house: House, data: str) -> None:
    """What two servers could read in two ways ends the connection: nothing that follows is taken for a request."""
    got = house.gateway.raw(data.encode("latin-1"))

    assert got.count(b"HTTP/1.1 ") <= 1
    assert b'"openapi":"3.1.0"' not in got.replace(b" ", b"")
    assert b"HTTP/1.1 5" not in got


@pytest.mark.parametrize(
    ("data", "statuses"),
    [
        ("GET http://169.254.1.1/healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", (200, 404)),
        ("GET http://evil/../../etc/passwd HTTP/1.1\r\nHost: evil\r\nConnection: close\r\n\r\n", (400, 403)),
        ("CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", (400, 403, 404, 405)),
        ("GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n", (200,)),
        ("GET /v1/models/../../healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", (401, 404)),
        ("GET //evil.example/healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", (200, 404)),
        ("TRACE / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", (405,)),
        ("GET /healthz?" + "a=b&" * 3000 + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", (200, 414)),
    ],
)  # fmt: skip
def test_odd_requests_are_read_in_one_way(house: House, data: str, statuses: tuple[int, ...]) -> None:
    """Targets that name another host, old versions, steps in paths."""
    got = house.gateway.raw(data.encode())

    assert int(got.split(b" ", 2)[1]) in statuses, got[:300]
    assert 1 == got.count(b"HTTP/1.1 ")


def test_chunks_with_extensions_and_trailers_are_a_body(house: House) -> None:
    """They are legal, and mean nothing: no trailer becomes a header."""
    body = _plain("chat/way-good")
    chunks = b"%x;a=b;c\r\n%b\r\n0\r\nAuthorization: Bearer %b\r\nX-Request-Id: trailer\r\n\r\n"
    head = HEAD.replace("tb-nobody", house.key) + "Content-Type: application/json\r\nConnection: close\r\n"
    data = f"{head}Transfer-Encoding: chunked\r\n\r\n".encode() + chunks % (len(body), body, b"tb-other")
    got = house.gateway.raw(data)

    assert got.startswith(b"HTTP/1.1 200")
    assert b"trailer" not in got


@settings(max_examples=80, suppress_health_check=list(HealthCheck))
@given(seed=SEEDS)
def test_noise_inside_a_request_breaks_nothing(house: House, capfd: pytest.CaptureFixture[str], seed: int) -> None:
    """Bytes changed, doubled and taken away in head and body."""
    chance = random.Random(seed)
    body = _plain("chat/way-good")
    head = HEAD.replace("tb-nobody", house.key) + "Content-Type: application/json\r\nConnection: close\r\n"
    data = bytearray(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(data))
        data[at : at + chance.randrange(3)] = chance.choice(
            (b"", b"\0", b"\r\n", b"\n", b"\xff", b":", b" ", b"{", b"\\u")
        )
    with house.gateway.connect() as connection:
        connection.sendall(data)
        connection.shutdown(1)
        got = read_all(connection)

    assert b"HTTP/1.1 5" not in got
    shown = got.decode("latin-1") + "".join(capfd.readouterr())
    assert [] == house.leaks(shown)


ANSWER = json.dumps(
    {"choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": "Hi."}}]}
).encode()


@pytest.fixture(scope="module")
def alone() -> Any:
    """An engine without a server, at endpoints of every dialect."""
    os.environ.setdefault("THINKBACK_TEST_KEY", SECRET)
    plays = Plays(lambda body: (200, "application/json", [ANSWER]))
    made = engine(plays, {name: f"http://{name}.test/v1" for name in ENDPOINTS})
    made.router.breakers.adjust(1_000_000, 1)
    return made


@settings(max_examples=100, suppress_health_check=list(HealthCheck))
@given(seed=SEEDS)
@example(seed=92619225)  # an object stands where a name of the upstream's account may stand
def test_no_body_breaks_the_engine(alone: Any, seed: int) -> None:
    """From every dialect to every dialect: what it cannot use, it says so. Anything else would be raised here."""
    spoken: str = tuple(PATHS)[seed % 4]
    body = mutated(spoken, seed)
    model = f"{ENDPOINTS[seed // 4 % len(ENDPOINTS)]}/some-model"
    if body.get("model") == "any":
        body["model"] = model
    kept = ask(alone, spoken, written(body, seed), model=model if spoken == "gemini" else "")

    assert kept.status in (200, 400, 404, 502) or (kept.status == 403 and b"which all keys share" in kept.body)
    assert SECRET.encode() not in kept.body
    assert kept.ended


@given(seed=SEEDS, value=st.sampled_from(["", "tb1.", "tb1.AAAA", "tb1." + "A" * 64]))
def test_what_reads_requests_refuses_in_its_own_words(seed: int, value: str) -> None:
    """Each part for itself raises errors of ours, or gives something that the next can take."""
    spoken: str = tuple(PATHS)[seed % 4]
    data = written(mutated(spoken, seed), seed).replace(b"toolu_1", value.encode() or b"toolu_1")
    sealer = Sealer(b"s" * 32)
    try:
        body = read_body(data)
        read_facts(spoken, body, model="m")
        drafts = dialect(spoken).read_request(body, lambda: "id", Origin(spoken, "", "")).drafts
        drafts = tuple(client_state.opened(drafts, sealer, b"scope", spoken).drafts)
    except ThinkbackError:
        return
    visible = echoed_messages(drafts)
    assert len(drafts) >= len(visible)
    resume.added((), drafts, visible, -1, {})
    json.loads(preserved(data, json.dumps(FRONTS[spoken]).encode()))


def _calls(count: int, names: Callable[[int], str], order: Callable[[list[int]], list[int]]) -> list[Any]:
    made = [{"id": f"c{at}", "type": "function", "function": {"name": "f", "arguments": "{}"}} for at in range(count)]
    results = [{"role": "tool", "tool_call_id": names(at), "content": "r"} for at in order(list(range(count)))]
    return [{"role": "user", "content": "q"}, {"role": "assistant", "tool_calls": made}, *results]


COSTLY: dict[str, tuple[str, dict[str, Any]]] = {
    "results in reverse": (
        "openai-chat",
        {"messages": _calls(9000, lambda at: f"c{at}", lambda order: order[::-1])},
    ),
    "results of nothing": ("openai-chat", {"messages": _calls(9000, lambda at: "other", lambda order: order)}),
    "tags": (
        "openai-chat",
        {"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "<think></think>" * 60_000}]},
    ),
    "calls by name": (
        "gemini",
        {
            "contents": [
                {"role": "user", "parts": [{"text": "q"}]},
                {"role": "model", "parts": [{"functionCall": {"name": f"f{at}", "args": {}}} for at in range(9000)]},
                {
                    "role": "user",
                    "parts": [{"functionResponse": {"name": f"f{at}", "response": {}}} for at in reversed(range(9000))],
                },
            ]
        },
    ),
    "messages": ("anthropic", {"max_tokens": 9, "messages": [{"role": "user", "content": "q"}] * 15_000}),
}


@pytest.mark.parametrize("what", list(COSTLY))
def test_a_megabyte_costs_no_more_than_seconds(alone: Any, what: str) -> None:
    """Nothing is compared with everything: before, some of these took half a minute, and one with 60 MB would hours."""
    spoken, body = COSTLY[what]
    model = "deepseek/some-model"
    data = json.dumps({**body, **({} if spoken == "gemini" else {"model": model})}).encode()
    began = time.process_time()
    kept = ask(alone, spoken, data, model=model if spoken == "gemini" else "", grant=GRANT, sink=Kept())

    assert 200 == kept.status
    assert time.process_time() - began < 5


def test_a_plan_that_matches_nothing_is_compared_in_no_time() -> None:
    """A few long messages in front of many short ones, all in other words."""

    def body(role: str) -> bytes:
        long = [{"role": role, "content": "q" * 30_000}] * 16
        short = [{"role": "user", "content": "q"}] * 8000
        return json.dumps({"messages": [*long, *short, {"role": role, "content": "z"}]}).encode()

    began = time.process_time()
    assert json.loads(body("system")) == json.loads(preserved(body("developer"), body("system")))
    assert time.process_time() - began < 3


def test_bodies_of_unknown_length_are_counted_as_they_grow(tmp_path: Path) -> None:
    """Chunks and packed bodies fill memory as others do: from the ninth largest on they are told to come again."""
    size = 1 << 20
    with running(server={"max_body": size, "body_timeout": 5}) as small:
        head = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer tb-stand-in\r\n"
        chunk = f"{head}Transfer-Encoding: chunked\r\n\r\n{size - 10:x}\r\n".encode() + b" " * (size - 10)
        held = [small.connect() for _ in range(12)]
        try:
            for connection in held:
                connection.sendall(chunk)
            statuses = sorted(_status(connection) for connection in held)
        finally:
            for connection in held:
                connection.close()

    assert 503 in statuses


def _status(connection: Any) -> int:
    connection.settimeout(0.3)
    try:
        got = connection.recv(4096)
    except TimeoutError:
        return 0
    return int(got.split(b" ", 2)[1]) if got else 0
