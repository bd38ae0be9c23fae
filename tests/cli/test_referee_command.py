"""``referee``: serves, tells how to reach it, reports verdicts, and ends cleanly."""

from __future__ import annotations

import os
import shlex
import signal
import socket
from pathlib import Path

import pytest

from tests.cli.command import Command
from tests.cli.conftest import Inside
from thinkback_referee import HOSTS


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_referee_serves_until_it_is_told_to_end(command: Command, number: signal.Signals) -> None:
    """Its first lines are a command that works as it stands; it ends with exit code 0."""
    with command.start("referee", "--port", "0") as process:
        assert process.stdout is not None
        lines = [process.stdout.readline().decode()]
        while "--list" not in lines[-1]:
            lines.append(process.stdout.readline().decode())
        line = shlex.split("".join(lines[1:3]).replace("\\\n", ""))
        answered = command(*line[1:], DEEPSEEK_API_KEY="")
        process.send_signal(number)
        rest_of_output = process.stdout.read().decode()

    assert len(lines) < 15
    assert ["thinkback", "run", "Hello", "--endpoint", "referee"] == line[:5]
    assert 0 == answered.code
    accepted = "200 deepseek deepseek-v4-pro: accepted\n" * 2  # the call of the stand-in's tool, and what it gave
    assert (0, f"{accepted}referee: ended\n") == (process.returncode, rest_of_output)


def test_the_hosts_are_listed_on_demand(inside: Inside) -> None:
    """Each with its base URL and models; nothing is served."""
    lines = inside("referee", "--list", "--port", "8123").out.splitlines()
    urls = dict(line.split() for line in lines if not line.startswith(" "))

    assert {name: f"http://127.0.0.1:8123{path}" for name, path in HOSTS.items()} == urls
    assert any("deepseek-v4-pro" in line for line in lines)


def test_a_port_in_use_is_told(command: Command) -> None:
    """An address that cannot be listened on ends with exit code 4 and advice."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = command("referee", "--port", str(taken.getsockname()[1]))

    assert 4 == done.code
    assert "--port" in done.err


@pytest.mark.parametrize("line", ["demo", "referee", "run Hi --endpoint referee"])
def test_without_it_the_commands_say_how_to_install_it(command: Command, tmp_path: Path, line: str) -> None:
    """They end with exit code 2, which stands for a missing package, and the line to run."""
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['thinkback_referee'] = None\n")
    path = os.pathsep.join((str(tmp_path), command.environment["PYTHONPATH"]))

    done = command(*line.split(), PYTHONPATH=path)

    assert (2, "") == (done.code, done.out)
    assert "run `pip install . ./referee` in a checkout of thinkback" in " ".join(done.err.split())
