"""Clients in processes of their own, with a time limit for each conversation."""

from __future__ import annotations

import json
import os
import select
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.gateway_clients.job import Job

ROOT = Path(__file__).parents[2]


class Worker:
    """A process that holds conversations; one that overruns its time is ended, and the next gets a fresh process."""

    def __init__(self, command: Sequence[str], seconds: float, more: Mapping[str, str] | None = None) -> None:
        self._command, self._more = list(command), more or {}
        self._seconds = seconds
        self._process: subprocess.Popen[bytes] | None = None

    def hold(self, job: Job) -> tuple[list[str], str]:
        """What the client said at the end of each turn, and what went wrong; empty: nothing."""
        process = self._started()
        assert process.stdin
        assert process.stdout
        process.stdin.write(json.dumps(job._asdict()).encode() + b"\n")
        process.stdin.flush()
        if not select.select([process.stdout], [], [], self._seconds)[0]:
            self.close()
            return [], f"no end after {self._seconds:g} s"
        line = process.stdout.readline()
        if not line:
            self.close()
            return [], "its process ended"
        found = json.loads(line)
        return list(found.get("said", ())), str(found.get("failed", ""))

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        for pipe in (process.stdin, process.stdout):
            if pipe:
                pipe.close()
        process.wait()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=ROOT,
                env={**_environment(), **self._more},
            )
        return self._process


def _environment() -> dict[str, str]:
    """What clients find: no keys, no proxies, no settings of whoever runs this."""
    kept = ("PATH", "HOME", "LANG", "TMPDIR", "SYSTEMROOT")
    found = {name: os.environ[name] for name in kept if name in os.environ}
    return {**found, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}", "NO_COLOR": "1"}
