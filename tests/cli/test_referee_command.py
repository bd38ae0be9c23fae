"""``referee``: serves, tells how to reach it, reports verdicts, and ends cleanly."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path

import pytest

from tests.cli.command import Command
from thinkback_referee import HOSTS


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_referee_serves_until_it_is_told_to_end(command: Command, number: signal.Signals) -> None:
    """It prints the base URL of each persona, answers ``run`` at one of them, and ends with exit code 0."""
    with command.start("referee", "--port", "0") as process:
        assert process.stdout is not None
        lines = iter(process.stdout.readline, b"")
        urls = {}
        for line in lines:
            name, _, rest = line.decode().strip().partition(" ")
            if name in HOSTS:
                urls[name] = rest.strip()
            if "--base-url" in line.decode():
                break
        answered = command(
            "run", "Hi", "--endpoint", "deepseek", "--model", "deepseek-v4-pro", "--base-url", urls["deepseek"]
        )
        process.send_signal(number)
        rest_of_output = process.stdout.read().decode()

    assert HOSTS.keys() == urls.keys()
    assert 0 == answered.code
    assert (0, "200 deepseek deepseek-v4-pro: accepted\nreferee: ended\n") == (process.returncode, rest_of_output)


def test_a_port_in_use_is_told(command: Command) -> None:
    """An address that cannot be listened on ends with exit code 4 and advice."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = command("referee", "--port", str(taken.getsockname()[1]))

    assert 4 == done.code
    assert "--port" in done.err


@pytest.mark.parametrize("name", ["demo", "referee"])
def test_without_it_the_commands_say_how_to_install_it(command: Command, tmp_path: Path, name: str) -> None:
    """They end with exit code 2, which stands for a missing package, and the line to run."""
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['thinkback_referee'] = None\n")
    path = os.pathsep.join((str(tmp_path), command.environment["PYTHONPATH"]))

    done = command(name, PYTHONPATH=path)

    assert (2, "") == (done.code, done.out)
    assert "run `pip install . ./referee` in a checkout of thinkback" in " ".join(done.err.split())
