"""A key in the query arrives, and the HTTP client, which logs addresses, never has it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TypeAlias

import pytest

from tests.drive.servers import Server, says
from thinkback.drive.http import AsyncHttpx2Transport, Httpx2Transport, Timeouts
from thinkback.errors import NetworkError

SECRET = "key-in-the-query"
QUERY = f"alt=sse&b=%2F%3A&key={SECRET}"
Post: TypeAlias = Callable[[str, str | None], int]


def post_sync(url: str, proxy: str | None) -> int:
    transport = Httpx2Transport(proxy)
    try:
        with transport.post(url, {}, b"{}", Timeouts()) as response:
            return response.status
    finally:
        transport.close()


def post_async(url: str, proxy: str | None) -> int:
    async def run() -> int:
        transport = AsyncHttpx2Transport(proxy)
        try:
            async with transport.post(url, {}, b"{}", Timeouts()) as response:
                return response.status
        finally:
            await transport.aclose()

    return asyncio.run(run())


@pytest.mark.parametrize("post", [post_sync, post_async])
@pytest.mark.parametrize("is_proxy", [False, True])
def test_query_arrives_and_is_not_logged(post: Post, is_proxy: bool, caplog: pytest.LogCaptureFixture) -> None:
    """Byte for byte, directly and through a proxy; at no level is it in the log."""
    caplog.set_level(logging.DEBUG)
    with Server(says(b"{}")) as server:
        url = f"http://far.example/v1/a:b?{QUERY}" if is_proxy else f"{server.url}/v1/a:b?{QUERY}"
        assert 200 == post(url, server.url if is_proxy else None)
    line = server.asked[0].line
    assert line.endswith(f"/v1/a:b?{QUERY} HTTP/1.1")
    assert ("http://far.example/" in line) == is_proxy
    assert SECRET not in caplog.text


@pytest.mark.parametrize("post", [post_sync, post_async])
@pytest.mark.parametrize("url", [f"http://127.0.0.1:1/v1?{QUERY}", f"ftp://x/?{QUERY}", f"http://a b/\x00?{QUERY}"])
def test_no_error_repeats_the_query(post: Post, url: str) -> None:
    """No connection, no such scheme, no URL."""
    with pytest.raises(NetworkError) as caught:
        post(url, None)
    assert SECRET not in str(caught.value)
