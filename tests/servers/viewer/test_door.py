"""Who may look: the token, the cookie it is exchanged for, names and origins, and what every answer forbids a page."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send

from thinkback.servers.viewer.door import LIFETIME, Door

HOST = "127.0.0.1:8000"
TOKEN = "a-token-of-32-random-bytes"


class Clock:
    """Seconds that the test says."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


async def inside(scope: Scope, receive: Receive, send: Send) -> None:
    """What is behind the door."""
    await PlainTextResponse(f"inside: {Request(scope).url.path}")(scope, receive, send)


def outside(clock: Clock | None = None) -> TestClient:
    """A browser before a new door."""
    door = Door(inside, [HOST], TOKEN, clock or Clock())
    return TestClient(door, base_url=f"http://{HOST}", follow_redirects=False)


def test_the_token_is_exchanged_once_for_a_cookie_that_no_script_and_no_other_site_gets() -> None:
    """On a page that leads to the same place without it; then it is dead, and the cookie opens."""
    client = outside()
    answer = client.get(f"/session/1?branch=a%20b&token={TOKEN}")
    cookie = answer.headers["set-cookie"]

    assert (200, "0; url=/session/1?branch=a+b") == (answer.status_code, answer.headers["refresh"])
    assert ["Path=/", "HttpOnly", "SameSite=Strict"] == cookie.split("; ")[1:]
    assert "inside: /" == client.get("/").text
    assert 403 == outside().get("/", headers={"cookie": f"{cookie.partition('=')[0]}=x"}).status_code
    assert 200 == client.get(f"/?token={TOKEN}").status_code  # who is in stays in
    client.cookies.clear()
    assert 403 == client.get(f"/?token={TOKEN}").status_code


def test_the_names_of_cookies_differ() -> None:
    """All ports of a host share their cookies: two viewers must not take each other's away."""
    names = {outside().get(f"/?token={TOKEN}").headers["set-cookie"].partition("=")[0] for _ in range(2)}

    assert 2 == len(names)


def test_a_token_is_dead_after_a_minute() -> None:
    """Whoever finds it later, in a history of a shell or a browser, gets nothing."""
    clock = Clock()
    client = outside(clock)
    clock.now = LIFETIME

    assert 403 == client.get(f"/?token={TOKEN}").status_code


def test_cookies_of_other_servers_on_this_host_are_not_in_the_way() -> None:
    """Whatever characters are in them: a browser sends them along."""
    client = outside()
    cookie = client.get(f"/?token={TOKEN}").headers["set-cookie"].partition(";")[0]
    client.cookies.clear()
    for foreign in ('prefs={"theme":"dark"}', "a[0]=1", "=x", "x", "bad,name=\xe9"):
        assert 200 == client.get("/", headers={b"cookie": f"{foreign}; {cookie}".encode("latin-1")}).status_code


@pytest.mark.parametrize("path", ["//evil.test/", "/%5Cevil.test", "/%2F%2Fevil.test"])
def test_the_way_on_stays_on_the_host(path: str) -> None:
    """Whatever path the token comes with."""
    location = outside().get(f"{path}?token={TOKEN}").headers["refresh"].removeprefix("0; url=")

    assert ("", "", "/") == (*urlsplit(location)[:2], location[:1])
    assert not location.startswith(("//", "/\\"))


@pytest.mark.parametrize(
    ("headers", "method", "status"),
    [
        ({"host": "evil.test"}, "GET", 403),
        ({"host": f"evil.test@{HOST}"}, "GET", 403),
        ({"origin": "http://evil.test"}, "GET", 403),
        ({"origin": "null"}, "GET", 403),
        ({"origin": f"https://{HOST}"}, "GET", 403),
        ({"origin": f"http://{HOST}"}, "GET", 200),
        ({}, "HEAD", 200),
        ({}, "POST", 405),
        ({}, "DELETE", 405),
    ],
)
def test_other_names_origins_and_methods_are_refused(headers: dict[str, str], method: str, status: int) -> None:
    """Also with the cookie: a name that was rebound to this address, a page of another site, a form."""
    client = outside()
    client.get(f"/?token={TOKEN}")

    answer = client.request(method, "/", headers=headers)
    assert status == answer.status_code
    assert ("inside" in answer.text) == (status == 200 and method == "GET")


def test_every_answer_says_what_a_page_must_not_do() -> None:
    """The refusals and the redirect too: no script from elsewhere, no frame, no referrer, no copy kept."""
    client = outside()
    for answer in (client.get("/"), client.get(f"/?token={TOKEN}"), client.get("/"), client.post("/")):
        policy = answer.headers["content-security-policy"]
        assert {"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'"} <= set(policy.split("; "))
        assert "unsafe" not in policy
        assert "://" not in policy
        assert ("no-referrer", "nosniff", "no-store") == tuple(
            answer.headers[name] for name in ("referrer-policy", "x-content-type-options", "cache-control")
        )
