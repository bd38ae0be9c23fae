"""``view``: the pages in a process of their own, for whoever has the link."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urljoin

import httpx2
import pytest

from tests.cli.command import Command
from tests.cli.conftest import Inside


@contextmanager
def viewed(command: Command, *arguments: str, browser: str) -> Iterator[str]:
    """The link that it prints, until Ctrl-C."""
    process = command.start("view", *arguments, BROWSER=browser)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().decode().strip()
    finally:
        process.send_signal(signal.SIGINT)
        assert 130 == process.wait(20)
        process.stdout.close()
        assert process.stderr is not None
        process.stderr.close()


def test_the_link_opens_a_session_once(talked: Command, tmp_path: Path) -> None:
    """On loopback alone; who comes after the browser gets nothing, and the log is as it was. Nobody reads the link off
    the browser's command line: a private file leads there.
    """
    before = talked("export", "--complete", "-").out
    started, opened = tmp_path / "started", tmp_path / "opened"
    script = tmp_path / "browser"
    script.write_text(
        f'#!/bin/sh\ncp -p "${{1#file://}}" {opened}\necho "$1" > {started}.new\nmv {started}.new {started}\n'
    )
    script.chmod(0o700)
    with viewed(talked, "talk", browser=f"{script} %s") as link, httpx2.Client(follow_redirects=True) as browser:
        assert link.startswith("http://127.0.0.1:")
        way = browser.get(link)
        answer = browser.get(urljoin(link, way.headers["refresh"].removeprefix("0; url=")))
        assert (200, True) == (answer.status_code, "get_weather" in answer.text)
        assert "token" not in str(answer.url)
        assert "token" not in started.read_text()
        assert (True, 0o600) == (link in opened.read_text(), opened.stat().st_mode & 0o777)
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
