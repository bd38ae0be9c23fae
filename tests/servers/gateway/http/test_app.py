"""What a client meets before the engine: routes, keys, refusals in its dialect, names of this host, web pages."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator

import pytest

from tests.servers.gateway.harness.running import Running, read_until, running
from tests.servers.gateway.harness.standin import KEY
from thinkback.servers.gateway.http.backend import Health


@pytest.fixture(scope="module")
def house() -> Iterator[Running]:
    """A gateway with the defaults, shared: these requests leave nothing behind."""
    with running() as made:
        yield made


PATHS = [
    ("/v1/chat/completions", "openai-chat"),
    ("/chat/completions", "openai-chat"),
    ("/v1/chat/completions/", "openai-chat"),
    ("/v1/responses", "openai-responses"),
    ("/responses", "openai-responses"),
    ("/v1/messages", "anthropic"),
    ("/v1/v1/messages", "anthropic"),
    ("/v1/messages?beta=true", "anthropic"),
    ("/v1beta/models/gemini-3-pro:generateContent", "gemini"),
    ("/v1/models/gemini-3-pro:generateContent", "gemini"),
    ("/models/gemini-3-pro:generateContent", "gemini"),
    ("/v1beta/openai/chat/completions", "openai-chat"),
    ("/v1beta/openai/v1/chat/completions", "openai-chat"),
    ("/openai/v1/chat/completions", "openai-chat"),
    ("/openai/v1/responses?api-version=preview", "openai-responses"),
    ("/openai/responses?api-version=2025-04-01-preview", "openai-responses"),
]


@pytest.mark.parametrize(("path", "front"), PATHS)
def test_every_client_finds_its_path(house: Running, path: str, front: str) -> None:
    """Base URLs with a version, without one, and with it twice lead to the dialect."""
    reply = house.ask(path, {"model": "m"})

    assert (200, front) == (reply.status, reply.json["front"])
    assert not reply.json["counts_only"]


def test_tokens_are_counted_by_a_path_of_their_own(house: Running) -> None:
    """``count_tokens`` is the same request without an answer."""
    assert house.ask("/v1/messages/count_tokens", {}).json["counts_only"]
    reply = house.ask("/v1beta/models/m:countTokens", {}).json
    assert ("gemini", "m", False, True) == tuple(reply[key] for key in ("front", "model", "streams", "counts_only"))


@pytest.mark.parametrize("model", ["fast", "deepseek/deepseek-v4-pro"])
def test_azures_deployment_is_the_model(house: Running, model: str) -> None:
    """Whatever the body says; errors are told as OpenAI tells them."""
    path = f"/openai/deployments/{model}/chat/completions?api-version=2024-10-21"
    reply = house.ask(path, {"model": "other"}, key=None, headers={"api-key": KEY})
    assert (200, "openai-chat", model) == (reply.status, reply.json["front"], reply.json["model"])
    assert "message" in house.ask("/v1beta/openai/models", key=None).json["error"]


def test_an_api_that_is_not_served_says_what_to_send(house: Running) -> None:
    """Instead of an address alone; in the dialect of its clients."""
    for path in ("/v1beta/interactions", "/v1beta/interactions/v1_abc"):
        error = house.ask(path, {}).json["error"]
        assert (404, "NOT_FOUND") == (error["code"], error["status"])
        assert "generateContent" in error["message"]


@pytest.mark.parametrize("model", ["gemini-3-pro", "openrouter/deepseek/v4:free", "a%2Fb%20c"])
def test_gemini_says_the_model_and_the_stream_in_the_address(house: Running, model: str) -> None:
    """Names with slashes, colons and escapes are one name."""
    reply = house.ask(f"/v1beta/models/{model}:streamGenerateContent?alt=sse", {})

    assert (model.replace("%2F", "/").replace("%20", " "), True) == (reply.json["model"], reply.json["streams"])


def test_a_gemini_stream_without_alt_is_one_array(house: Running) -> None:
    """Events become elements, cut wherever the bytes were."""
    path = "/v1beta/models/m:streamGenerateContent"

    assert [{"n": 0}, {"n": 1}, {"n": 2}] == house.ask(path, {"do": "stream", "events": 3}).json
    assert [] == house.ask(path, {"do": "stream", "events": 0}).json
    assert b'data: {"n": 0}\n\n' == house.ask(f"{path}?alt=sse", {"do": "stream", "events": 1}).body


ERRORS = [
    ("/v1/chat/completions", ("error", "message")),
    ("/v1/responses", ("error", "message")),
    ("/v1/messages", ("error", "message")),
    ("/v1beta/models/m:generateContent", ("error", "status")),
]


@pytest.mark.parametrize(("path", "keys"), ERRORS)
def test_a_refusal_is_told_in_the_dialect_of_the_path(house: Running, path: str, keys: tuple[str, str]) -> None:
    """Every client gets the error that it can read, with the status of HTTP."""
    refusals = [
        (401, house.ask(path, {}, key=None)),
        (401, house.ask(path, {}, key="tb-unknown")),
        (405, house.ask(path)),
        (415, house.ask(path, b"{}", headers={"content-type": "text/plain"})),
        (415, house.ask(path, b"{}", headers={"content-encoding": "br"})),
        (400, house.ask(path, b'{"a": "\xff"}')),
        (400, house.ask(path, b"[" * 200 + b"]" * 200)),
        (429, house.ask(path, {"do": "refuse", "status": 429, "retry_after": 2.2})),
    ]

    for status, reply in refusals:
        assert status == reply.status
        assert reply.json[keys[0]][keys[1]]
        assert ("type" in reply.json) == (path == "/v1/messages")
    assert "POST" == refusals[2][1].headers["allow"]
    assert "3" == refusals[-1][1].headers["retry-after"]
    assert "Bearer" == refusals[0][1].headers["www-authenticate"]


def test_a_path_of_nobody_is_refused_in_the_commonest_dialect(house: Running) -> None:
    """404 is told as OpenAI tells it."""
    reply = house.ask("/v2/nothing")

    assert (404, True) == (reply.status, "message" in reply.json["error"])


def test_what_fails_inside_is_told_without_its_words(house: Running) -> None:
    """Names of files and whatever an exception quotes stay inside."""
    failed, locked = house.chat(do="break"), house.chat(do="break", store=True)

    assert (500, 503) == (failed.status, locked.status)
    assert b"sk-secret" not in failed.body
    assert b"secret.db" not in locked.body
    assert "retry-after" in locked.headers


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": f"Bearer {KEY}"},
        {"authorization": f"bearer  {KEY}"},
        {"x-api-key": KEY},
        {"api-key": KEY},
        {"x-goog-api-key": KEY},
        {"x-api-key": "sk-ant-found-elsewhere", "authorization": f"Bearer {KEY}"},
    ],
)
def test_a_key_is_taken_where_the_dialect_has_it(house: Running, headers: dict[str, str]) -> None:
    """Each SDK has a header of its own."""
    assert 200 == house.ask("/v1/chat/completions", {}, headers=headers, key=None).status


def test_a_key_may_stand_in_the_address(house: Running) -> None:
    """Gemini's clients may put it there; it goes no further."""
    reply = house.ask(f"/v1beta/models/m:generateContent?key={KEY}", {}, key=None)

    assert 200 == reply.status
    assert KEY not in reply.body.decode()


def test_no_credential_and_nothing_between_two_hops_goes_on(house: Running) -> None:
    """The engine sees what the client says of its request, not how it came here."""
    sent = {
        "authorization": f"Bearer {KEY}",
        "cookie": "a=b",
        "x-api-key": KEY,
        "connection": "keep-alive, x-hop",
        "x-hop": "1",
        "te": "trailers",
        "proxy-authorization": "Basic x",
        "anthropic-beta": "one",
        "thinkback-set": "reasoning.effort=high",
    }
    headers = house.ask("/v1/messages", {}, headers=sent, key=None).json["headers"]

    assert {"anthropic-beta": "one", "thinkback-set": "reasoning.effort=high"} == {
        name: value for name, value in headers.items() if name in sent
    }


def test_every_response_has_an_id(house: Running) -> None:
    """A client's own word where it is safe to repeat, else one of ours."""
    path = "/v1/chat/completions"

    assert "abc-1" == house.ask(path, {}, headers={"x-request-id": "abc-1"}).headers["x-request-id"]
    assert house.ask(path, {}, headers={"x-request-id": "a b"}).headers["x-request-id"].startswith("req_")
    assert house.ask("/nothing").headers["x-request-id"].startswith("req_")
    assert "request-id" in house.ask("/v1/messages", {}).headers


def test_no_header_breaks_a_response(house: Running) -> None:
    """What a header cannot carry is left out, and a length is told once."""
    with house.open_chat(do="headers") as connection:
        head = read_until(connection, b"\r\n\r\n{}").lower()

    assert b"\r\nthinkback-left-out: a b x: y?\r\n" in head
    assert 1 == head.count(b"content-length")


BODY = json.dumps({"do": "echo", "text": "\u00e9" * 500}).encode()


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("gzip", gzip.compress(BODY, mtime=0)),
        ("GZIP", gzip.compress(BODY, mtime=0)),
        ("deflate", zlib.compress(BODY)),
        ("deflate", zlib.compress(BODY, wbits=-15)),
        ("identity", BODY),
    ],
)
def test_a_packed_body_is_unpacked(house: Running, encoding: str, packed: bytes) -> None:
    """The engine gets the text."""
    before = len(house.behind.incoming)

    assert 200 == house.ask("/v1/chat/completions", packed, headers={"content-encoding": encoding}).status
    assert BODY == house.behind.incoming[before].request.body


@pytest.mark.parametrize(
    "packed", [gzip.compress(BODY, mtime=0)[:-9], gzip.compress(BODY, mtime=0) + b"x", b"no gzip", b"", BODY[:20]]
)
def test_a_broken_packing_is_refused(house: Running, packed: bytes) -> None:
    """Cut short, with something behind it, or no gzip at all."""
    assert 400 == house.ask("/v1/chat/completions", packed, headers={"content-encoding": "gzip"}).status


def test_models_are_listed_as_each_client_expects(house: Running) -> None:
    """OpenAI's shape, Anthropic's where its version header is, Gemini's under its own version."""
    names = ["fast", "deepseek/deepseek-v4-pro"]
    anthropic = house.ask("/v1/models", headers={"anthropic-version": "2023-06-01"}).json

    assert names == [row["id"] for row in house.ask("/v1/models").json["data"]]
    assert names == [row["id"] for row in anthropic["data"]]
    assert names[0] == anthropic["first_id"]
    assert "2026-09-21T14:13:20Z" == anthropic["data"][1]["created_at"]
    assert [f"models/{name}" for name in names] == [row["name"] for row in house.ask("/v1beta/models").json["models"]]
    assert names[1] == house.ask(f"/v1/models/{names[1]}").json["id"]
    assert 404 == house.ask("/v1/models/none").status
    assert 401 == house.ask("/v1/models", key=None).status


def test_health_needs_no_key_and_says_what_is_degraded(house: Running) -> None:
    """Whoever balances load knows no keys."""
    house.behind.health_now = Health(True, {"store": "degraded: spooling"})
    fine = house.ask("/readyz", key=None)
    house.behind.health_now = Health(False, {"store": "unreachable"})
    broken = house.ask("/readyz", key=None)

    assert b"ok\n" == house.ask("/healthz", key=None).body
    assert (200, "degraded: spooling") == (fine.status, fine.json["parts"]["store"])
    assert (503, False) == (broken.status, broken.json["ready"])


def test_measures_are_for_this_machine(house: Running) -> None:
    """What a proxy passes on did not begin here, although it seems so."""
    house.chat()
    here = house.ask("/metrics", key=None)

    assert 200 == here.status
    row = 'thinkback_requests_total{front="openai-chat",upstream="deepseek",status="200"}'
    assert row in here.body.decode()
    assert 'thinkback_tokens_total{upstream="deepseek",kind="reasoning"}' in here.body.decode()
    assert 403 == house.ask("/metrics", key=None, headers={"x-forwarded-for": "203.0.113.9"}).status


def test_head_and_options_are_answered(house: Running) -> None:
    """HEAD is GET without its body; OPTIONS says the methods."""
    head, options = house.ask("/v1/models", method="HEAD"), house.ask("/v1/messages", method="OPTIONS", key=None)

    assert (200, b"") == (head.status, head.body)
    assert (204, "POST, OPTIONS") == (options.status, options.headers["allow"])


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "", "localhost:80:80", "127.0.0.1.nip.io"])
def test_another_name_for_this_machine_is_refused(house: Running, host: str) -> None:
    """A page whose name leads to loopback (DNS rebinding) gets nothing."""
    assert 403 == house.ask("/v1/chat/completions", {}, headers={"host": host}).status
    assert 403 == house.ask("/healthz", headers={"host": host}).status


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:8484", "[::1]:8484"])
def test_its_own_names_are_answered(house: Running, host: str) -> None:
    """With any port: forwarded ones are others."""
    assert 200 == house.ask("/healthz", headers={"host": host}).status


def test_a_page_on_the_web_may_not_ask(house: Running) -> None:
    """No header allows it, a preflight is refused, and what needs no preflight is refused, too."""
    page = {"origin": "https://evil.example"}
    asked = {**page, "access-control-request-method": "POST"}
    preflight = house.ask("/v1/chat/completions", method="OPTIONS", headers=asked, key=None)
    simple = house.ask("/v1/chat/completions", {}, headers=page)
    read = house.ask("/healthz", headers=page)

    assert (403, 403) == (preflight.status, simple.status)
    assert [] == [name for each in (preflight, simple, read) for name in each.headers if name.startswith("access-")]


def test_a_configured_page_may_ask() -> None:
    """Its origin is repeated exactly, and no other one."""
    with running(server={"cors_origins": ["https://chat.example"]}) as house:
        page = {"origin": "https://chat.example"}
        asked = {
            **page,
            "access-control-request-method": "POST",
            "access-control-request-headers": "authorization, content-type, bad header",
        }
        preflight = house.ask("/v1/chat/completions", method="OPTIONS", headers=asked, key=None)
        done = house.ask("/v1/chat/completions", {}, headers=page)
        other = house.ask("/v1/chat/completions", {}, headers={"origin": "https://chat.example.evil"})

        assert (204, "authorization, content-type") == (
            preflight.status,
            preflight.headers["access-control-allow-headers"],
        )
        assert (200, "https://chat.example") == (done.status, done.headers["access-control-allow-origin"])
        assert "thinkback-reattach" in done.headers["access-control-expose-headers"]
        assert (403, False) == (other.status, "access-control-allow-origin" in other.headers)


def test_without_keys_everybody_here_comes_in() -> None:
    """``no_auth`` asks for none."""
    with running(server={"no_auth": True}) as house:
        assert 200 == house.ask("/v1/chat/completions", {}, key=None).status
        assert 200 == house.ask("/v1/chat/completions", {}, key="sk-anything").status


@pytest.mark.parametrize("name", ["authorization", "x-api-key", "api-key", "x-goog-api-key", "thinkback-key"])
def test_two_credentials_are_refused(house: Running, name: str) -> None:
    """Which of them counts would be for each part on the way to say."""
    lines = f"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n{name}: Bearer {KEY}\r\n{name.title()}: Bearer x\r\n"
    got = house.raw(f"{lines}Connection: close\r\n\r\n".encode())

    assert got.startswith(b"HTTP/1.1 400")
    assert f"two {name} headers".encode() in got


@pytest.mark.parametrize("path", ["/v1/responses", "/responses"])
def test_a_websocket_is_refused_at_once(house: Running, path: str) -> None:
    """With the status that makes a client go on over HTTP."""
    sent = {"connection": "Upgrade", "upgrade": "websocket", "sec-websocket-version": "13", "sec-websocket-key": "eA=="}
    reply = house.ask(path, headers=sent)

    assert (426, "HTTP/1.1") == (reply.status, reply.headers["upgrade"])
    assert 405 == house.ask(path).status


@pytest.mark.parametrize("path", ["/", "/healthz", "/v1/models", *dict(PATHS)])
def test_head_and_options_are_answered_everywhere(house: Running, path: str) -> None:
    """HEAD has no body, OPTIONS says the methods."""
    head, options = house.ask(path, method="HEAD"), house.ask(path, method="OPTIONS", key=None)

    assert (200, b"", 204) == (head.status, head.body, options.status)
    assert "OPTIONS" in options.headers["allow"]


def test_head_and_options_where_there_is_nothing_are_answered_as_any_request_is(house: Running) -> None:
    """404 in the dialect of the path, for HEAD with the length and no body; a wrong method is told the right ones."""
    for path in ("/none", "/v1/none", "/v1/models/none"):
        got, head = house.ask(path), house.ask(path, method="HEAD")
        assert (404, 404, b"") == (got.status, head.status, head.body)
        assert got.headers["content-length"] == head.headers["content-length"]
    options = house.ask("/v1/none", method="OPTIONS", key=None)
    assert (404, "not_found") == (options.status, options.json["error"]["code"])
    wrong = house.ask("/v1/models", method="PUT")
    assert (405, "GET, HEAD") == (wrong.status, wrong.headers["allow"])


@pytest.mark.parametrize(
    ("path", "page", "status"),
    [("/none", "root", 404), ("/v1/none", "root", 404), ("/healthz", "health", 200), ("/v1/models", "models", 200)],
)
def test_every_request_has_a_line_in_the_log(
    capfd: pytest.CaptureFixture[str], path: str, page: str, status: int
) -> None:
    """Also where nothing is: the path is told then."""
    with running(logs={"level": "info", "format": "json"}) as house:
        id = house.ask(path).headers["x-request-id"]
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    told = [line for line in lines if line["event"] == "request"]

    assert [(id, "GET", page, status)] == [(line["id"], line["method"], line["page"], line["status"]) for line in told]
    assert (path if status == 404 else None) == told[0].get("path")
