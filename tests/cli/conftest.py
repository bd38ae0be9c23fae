"""What the tests of the command line share: the command, a referee, and a log with opaque values in it."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import TextIO

import pytest

import thinkback
from tests.cli.command import KEY, Command, Outcome
from thinkback_referee import Referee

SIGNATURE = "c2lnbmF0dXJlIG9mIGEgdGVzdCwgbm90IG9mIGEgcHJvdmlkZXI="
ENCRYPTED = "ZW5jcnlwdGVkIHJlYXNvbmluZyBvZiBhIHRlc3QsIGFzIGl0IHdlcmU="


@pytest.fixture
def command(tmp_path: Path, warm: tuple[str, ...]) -> Command:
    """``thinkback`` with an empty place of its own."""
    return Command(tmp_path, warm)


class Inside(Command):
    """The same, run in this process: for what needs none of its own. ``stream`` is its standard input where that is
    more than bytes.
    """

    stream: TextIO | None = None

    def __init__(self, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        super().__init__(place)
        self._monkeypatch, self._capsys = monkeypatch, capsys

    def __call__(self, *arguments: str, stdin: bytes = b"", **environment: str) -> Outcome:
        """Run it to its end."""
        from thinkback.cli.app import run

        with self._monkeypatch.context() as patch:
            for name, value in {**self.environment, **environment}.items():
                patch.setenv(name, value)
            patch.setattr(sys, "stdin", self.stream or io.TextIOWrapper(io.BytesIO(stdin)))
            self._capsys.readouterr()
            try:
                code = run(arguments)
            except SystemExit as left:
                code = int(left.code or 0)
            shown = self._capsys.readouterr()
        return Outcome(code, shown.out, shown.err)


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Inside:
    """``thinkback`` in this process, with the same place as ``command``."""
    monkeypatch.delenv("DEEPSEEK_API_KEY", raising=False)
    return Inside(tmp_path, monkeypatch, capsys)


@pytest.fixture
def line(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> Inside:
    """The same where nothing says which log is meant, with its place as the working directory."""
    del inside.environment["THINKBACK_DB"]
    inside.environment["XDG_DATA_HOME"] = str(inside.place / "data")
    inside.config.mkdir()
    monkeypatch.chdir(inside.place)
    return inside


@pytest.fixture
def talked(command: Command, referee: Referee) -> Command:
    """The command with a log: session ``talk``, one turn with a tool against the referee."""

    def get_weather(city: str) -> str:
        """The weather in a city."""
        return f"{city}: rain"

    with thinkback.open(command.db, rules={}, settings={}) as store:
        session = store.session(
            "talk",
            endpoint="deepseek",
            model="deepseek-v4-pro",
            base_url=referee.base_url("deepseek"),
            api_key=KEY,
        )
        session.chat("What is the weather in Oslo?", tools=[get_weather])
    return command


@pytest.fixture
def opaque(command: Command) -> Command:
    """The command with a log: session ``opaque``, one response with a signature and encrypted reasoning."""
    details = [
        {"type": "reasoning.text", "text": "A thought.", "signature": SIGNATURE, "format": "anthropic-claude-v1"},
        {"type": "reasoning.encrypted", "data": ENCRYPTED, "format": "anthropic-claude-v1", "index": 1},
    ]
    message = {"role": "assistant", "content": "An answer.", "reasoning": "A thought.", "reasoning_details": details}
    body = {"id": "gen-1", "model": "served", "choices": [{"message": message, "finish_reason": "stop"}]}
    with thinkback.open(command.db, rules={}, settings={}) as store:
        session = store.session("opaque", endpoint="openrouter", model="anthropic/claude-sonnet-4.5", api_key=KEY)
        session.wire.plan("Hi", stream=False)
        session.wire.ingest(json.dumps(body))
    return command
