"""``demo``: it really happens, it tells what went back, and it fails when it does not."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tests.cli.command import Command


@pytest.fixture
def demo(command: Command) -> str:
    """What the demo prints, run without pauses."""
    done = command("demo", "--pace", "0", TMPDIR=str(command.place), http_proxy="http://127.0.0.1:9")
    assert (0, "") == (done.code, done.err)
    return done.out


def test_the_demo_shows_a_conversation_the_table_and_the_refusal(demo: str) -> None:
    """The turns are shown, then the decisions with the reason of all, then the provider's own 400."""
    words = " ".join(demo.split())

    assert [4, 3, 3, 2] == [demo.count(f"\n{label}  ") for label in ("thinks", "calls", "result", "answers")]
    assert 3 == len(re.findall(r"^[0-9a-f]{8}  reasoning  field .* deepseek-v4$", demo, re.MULTILINE))
    assert 1 == words.count("each of them: goes back in reasoning_content: the endpoint requires it")
    assert "block kind action message characters rule" in words
    assert "HTTP 400 The `reasoning_content` in the thinking mode must be passed back to the API." in words


def test_the_demo_fits_eighty_columns(demo: str) -> None:
    """No line is longer than 80 columns, but for the commands to go on with."""
    assert [] == [
        line for line in demo.splitlines() if len(line) > 80 and not re.match("    .*(-m thinkback|rm -r) ", line)
    ]


def test_the_demo_leaves_a_log_to_look_at(command: Command, demo: str) -> None:
    """The command to look at the log works when pasted, in a shell that knows nothing of this process."""
    line = next(line for line in demo.splitlines() if "log --db" in line)
    shell = {"PATH": os.environ["PATH"], "HOME": str(command.place)}

    done = subprocess.run(["sh", "-c", line], env=shell, capture_output=True, text=True, timeout=60)

    assert (0, "") == (done.returncode, done.stderr)
    assert 4 == done.stdout.count("[reasoning]")

    removal = next(line for line in demo.splitlines() if "rm -r" in line)
    subprocess.run(["sh", "-c", removal], env=shell, check=True, timeout=60)
    assert [] == list(command.place.glob("thinkback-demo-*"))


def test_an_installed_thinkback_is_called_by_its_name(command: Command) -> None:
    """A script on the PATH is named; one that is elsewhere is called by its path."""
    script = command.place / "bin" / "thinkback"
    script.parent.mkdir()
    script.write_text(f"#!{sys.executable}\nfrom thinkback.cli import main\nmain()\n")
    script.chmod(0o700)
    environment = {**command.environment, "TMPDIR": str(command.place)}

    def last(path: str) -> str:
        demo = [str(script), "demo", "--pace", "0"]
        done = subprocess.run(demo, env={**environment, "PATH": path}, capture_output=True, text=True, timeout=60)
        return done.stdout.splitlines()[-1].strip()

    assert last(f"{script.parent}{os.pathsep}{os.environ['PATH']}").startswith("thinkback run ")
    assert last("/nowhere").startswith(f"{script} run ")


def test_the_demo_is_plain_without_a_terminal(command: Command, demo: str) -> None:
    """Colours are for terminals: there reasoning is dim and italic."""
    shown = command.on_terminal("demo", "--pace", "0", TMPDIR=str(command.place))

    assert "\x1b" not in demo
    assert 0 == shown.code
    assert "\x1b[2;3mTurn\x1b[0m" in shown.out
