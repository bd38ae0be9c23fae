"""What is loaded when, checked in a fresh process."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

import thinkback
from tests.session.chats import KEY
from thinkback_referee import Referee


def run(program: str) -> str:
    """The output of ``program`` in a process of its own."""
    command = [sys.executable, "-c", textwrap.dedent(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (0, "") == (done.returncode, done.stderr)
    return done.stdout.strip()


def test_sync_path_never_imports_asyncio(referee: Referee) -> None:
    """A chat with tools, a stream, a plan by hand."""
    program = f"""
        import sys, thinkback
        def look(city: str) -> str:
            "Look at a city."
            return city
        with thinkback.open(":memory:") as store:
            session = store.session(
                "chat", endpoint="deepseek", model="deepseek-v4-pro",
                base_url={referee.base_url("deepseek")!r}, api_key={KEY!r},
            )
            assert session.chat("Look at Oslo.", tools=[look]).state == "completed"
            assert list(session.stream("Again?"))
            session.wire.plan("And?")
            session.why()
        print("asyncio" in sys.modules)
    """
    assert "False" == run(program)


def test_import_loads_next_to_nothing() -> None:
    """Names load on first use: no HTTP client, no database, no rules."""
    program = """
        import sys, thinkback
        heavy = ("httpx2", "sqlite3", "asyncio", "ssl", "tomllib", "msgspec", "thinkback.session", "thinkback.rules")
        print([name for name in heavy if name in sys.modules])
    """
    assert "[]" == run(program)


def test_reading_a_log_needs_no_http_client() -> None:
    """Opening, listing and reading."""
    program = """
        import sys, thinkback
        with thinkback.open(":memory:") as store:
            session = store.session("chat")
            assert session.log() == [] and store.sessions()
        print([name for name in ("httpx2", "asyncio", "ssl") if name in sys.modules])
    """
    assert "[]" == run(program)


def test_the_transport_loads_what_its_requests_need() -> None:
    """Neither its import nor a usual request loads a driver, a sign-in of a cloud, or other dialects' parameters."""
    program = """
        import sys, httpx2, thinkback
        def answer(request):
            message = {"role": "assistant", "reasoning_content": "So.", "content": "42."}
            return httpx2.Response(200, json={"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
        body = {"model": "deepseek-v4-pro", "messages": [{"role": "user", "content": "Why?"}]}
        with thinkback.http_client(":memory:", transport=httpx2.MockTransport(answer)) as client:
            client.post("https://api.deepseek.com/chat/completions", json=body)
        drive = [f"drive.{name}" for name in ("agenda", "asynchronous", "leases", "line", "sync", "tools", "auth.aws")]
        turn = ["turn.safe_commands", "turn.translation.parameters", "turn.translation.reasoning"]
        rare = [*drive, *turn, "session.store", "session.config.keys", "wire.event_stream"]
        rare.append("adapters.transport.refusals")
        found = [*(f"thinkback.{name}" for name in rare), "difflib", "html.entities"]
        print(thinkback.why().recorded, [name for name in found if name in sys.modules])
    """
    assert "True []" == run(program)


def test_every_public_name_is_there() -> None:
    """Each loads, is listed, and nothing else is pretended."""
    for name in thinkback.__all__:
        assert getattr(thinkback, name) is not None
    assert sorted(thinkback.__all__) == dir(thinkback)
    with pytest.raises(AttributeError, match="no attribute 'oepn'"):
        _ = thinkback.oepn
