"""``view``: the pages in a process of their own, for whoever has the link."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import httpx2
import pytest

from tests.cli.command import Command
from tests.cli.conftest import Inside


@contextmanager
def viewed(command: Command, *arguments: str) -> Iterator[str]:
    """The link that it prints, until Ctrl-C."""
    process = command.start("view", "--no-browser", *arguments)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().decode().strip()
    finally:
        process.send_signal(signal.SIGINT)
        assert 130 == process.wait(20)
        process.stdout.close()
        assert process.stderr is not None
        process.stderr.close()


def test_the_link_opens_a_session_once(talked: Command) -> None:
    """On loopback alone; who comes after the browser gets nothing, and the log is as it was."""
    before = talked("export", "--complete", "-").out
    with viewed(talked, "talk") as link, httpx2.Client(follow_redirects=True) as browser:
        assert link.startswith("http://127.0.0.1:")
        answer = browser.get(link)
        assert (200, True) == (answer.status_code, "get_weather" in answer.text)
        assert "token" not in str(answer.url)
        assert [403, 403] == [httpx2.get(link).status_code, httpx2.get(str(answer.url)).status_code]
    assert before == talked("export", "--complete", "-").out


def test_what_cannot_be_viewed_is_said(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    """No log, and a package that is not installed."""
    missing = inside("view")
    monkeypatch.setitem(sys.modules, "nh3", None)
    without = inside("view")

    assert (2, True) == (missing.code, "there is no log" in missing.err)
    assert "the viewer needs the package nh3" in without.err
    assert ".[viewer]" in without.err
