"""``demo``: it really happens, it tells what went back, and it fails when it does not."""

from __future__ import annotations

import re

import pytest

from tests.cli.command import Command


@pytest.fixture
def demo(command: Command) -> str:
    """What the demo prints, run without pauses."""
    done = command("demo", "--pace", "0", TMPDIR=str(command.place), http_proxy="http://127.0.0.1:9")
    assert (0, "") == (done.code, done.err)
    return done.out


def test_the_demo_shows_a_conversation_the_table_and_the_refusal(demo: str) -> None:
    """The turns are shown, then the decisions with their reasons, then the provider's own 400."""
    words = " ".join(demo.split())

    assert [4, 3, 3, 2] == [demo.count(f"\n{label}  ") for label in ("thinks", "calls", "result", "answers")]
    assert 3 == len(re.findall(r"^[0-9a-f]{8}  reasoning  field .* deepseek-v4\n {10}\w", demo, re.MULTILINE))
    assert "block kind action message characters rule" in words
    assert "HTTP 400 The `reasoning_content` in the thinking mode must be passed back to the API." in words


def test_the_demo_fits_eighty_columns(demo: str) -> None:
    """No line is longer than 80 columns, but for the path of the log."""
    assert [] == [line for line in demo.splitlines() if len(line) > 80 and "thinkback log --db" not in line]


def test_the_demo_leaves_a_log_to_look_at(command: Command, demo: str) -> None:
    """The last lines name the log, and it holds what was shown."""
    path = next(line for line in demo.splitlines() if "thinkback log --db" in line).rpartition(" ")[2]

    done = command("log", "demo", "--db", path)

    assert 0 == done.code
    assert 4 == done.out.count("[reasoning]")


def test_the_demo_is_plain_without_a_terminal(command: Command, demo: str) -> None:
    """Colours are for terminals: there reasoning is dim and italic."""
    shown = command.on_terminal("demo", "--pace", "0", TMPDIR=str(command.place))

    assert "\x1b" not in demo
    assert 0 == shown.code
    assert "\x1b[2;3mTurn\x1b[0m" in shown.out
