"""The real command in a process of its own, with an environment of its own."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import thinkback

SOURCES = Path(thinkback.__file__).parent.parent
KEY = "sk-test-0123456789abcdef"
PLACE = ("--endpoint", "deepseek", "--model", "deepseek-v4-pro", "--base-url")


class Outcome(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Command:
    """Runs ``thinkback`` with its log, configuration and home under ``place``.

    ``warm`` is how the line of a command begins that runs in a fork of a server that has imported everything; without
    it each command starts a Python of its own, which may be killed.
    """

    def __init__(self, place: Path, warm: tuple[str, ...] = ()) -> None:
        self.warm = warm
        self.place = place
        self.db = place / "log.db"
        self.config = place / "config"
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(place),
            "PYTHONPATH": str(SOURCES),
            "PYTHONUTF8": "1",
            "PYTHONWARNINGS": "error",
            "TERM": "xterm",
            "THINKBACK_CONFIG_DIR": str(self.config),
            "THINKBACK_DB": str(self.db),
            "DEEPSEEK_API_KEY": KEY,
            "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
        }

    def __call__(self, *arguments: str, stdin: bytes = b"", **environment: str) -> Outcome:
        """Run it to its end, with pipes for its streams."""
        line, given = self.quick_line(*arguments, **environment), {**self.environment, **environment}
        done = subprocess.run(line, input=stdin, capture_output=True, env=given, timeout=60)
        return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())

    def on_terminal(self, *arguments: str, **environment: str) -> Outcome:
        """Run it to its end, on a terminal; what it printed on both streams is in ``out``. Nobody types, unless there
        is a pager.
        """
        master, slave = pty.openpty()
        with subprocess.Popen(
            self.quick_line(*arguments, **environment),
            stdin=slave if "PAGER" in environment else subprocess.DEVNULL,
            stdout=slave,
            stderr=slave,
            env={**self.environment, **environment},
        ) as process:
            os.close(slave)
            shown = b"".join(iter(lambda: _read(master), b""))
            os.close(master)
        return Outcome(process.returncode, shown.decode(), "")

    def start(self, *arguments: str, stdin: int = subprocess.DEVNULL, **environment: str) -> subprocess.Popen[bytes]:
        """Begin it, with pipes for its output."""
        return subprocess.Popen(
            self.line(*arguments),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**self.environment, **environment},
            # where the tests run in the background, Ctrl-C would be ignored
            preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
        )

    @staticmethod
    def line(*arguments: str) -> list[str]:
        """With a Python of its own."""
        return [sys.executable, "-m", "thinkback", *arguments]

    def quick_line(self, *arguments: str, **environment: str) -> list[str]:
        """Where it only matters what the command does: not where it is killed, and not for what is imported when."""
        if not self.warm or any(name.startswith("PYTHON") for name in environment):  # it reads these when it starts
            return self.line(*arguments)
        return [*self.warm, *arguments]


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # Linux says so when the other side of a terminal has closed
        return b""
