"""One run of an agent's program: in a process group of its own, which is ended whole when its time is up."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_KEPT = ("LANG", "SYSTEMROOT")
_SHOWN = 2000


class Ran(NamedTuple):
    """What a program printed, and what went wrong; empty: nothing."""

    output: str
    failed: str


class Running:
    """A program that runs; ``end`` kills it with everything it started."""

    def __init__(
        self, command: Sequence[str], directory: Path, environment: Mapping[str, str], keep: Sequence[int] = ()
    ) -> None:
        self._output = tempfile.TemporaryFile()  # noqa: SIM115  # closed when the program has ended
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=self._errors,
            cwd=directory,
            env=dict(environment),
            start_new_session=True,
            pass_fds=keep,
        )

    def wait(self, seconds: float) -> Ran:
        """Until it ends by itself, ``seconds`` at most."""
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return self._closed(f"no end after {seconds:g} s")
        return self._closed(f"exit code {code}" if code else "")

    def lives(self, seconds: float) -> bool:
        """Whether it still runs after so many seconds."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return True
        return False

    def end(self) -> Ran:
        """Kill it, if it still runs."""
        return self._closed("killed")

    def _closed(self, failed: str) -> Ran:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        texts = []
        for file in (self._output, self._errors):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
            file.close()
        output, errors = texts
        return Ran(output, f"{failed}: {(errors.strip() or output.strip())[-_SHOWN:]}" if failed else "")


def environment(home: Path, path: Sequence[Path], more: Mapping[str, str]) -> dict[str, str]:
    """What an agent finds: a home of its own, no keys, no proxies, no settings of whoever runs this."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    found = os.pathsep.join([*map(str, path), "/usr/local/bin", "/usr/bin", "/bin"])
    folders = {"XDG_CONFIG_HOME": ".config", "XDG_DATA_HOME": ".local/share", "XDG_STATE_HOME": ".local/state"}
    xdg = {name: str(home / folder) for name, folder in {**folders, "XDG_CACHE_HOME": ".cache"}.items()}
    quiet = {"NO_COLOR": "1", "CI": "1", "TERM": "dumb", "SHELL": "/bin/bash"}
    return {**kept, **quiet, "HOME": str(home), "PATH": found, "TMPDIR": str(home / "tmp"), **xdg, **more}
