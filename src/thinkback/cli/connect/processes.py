"""Which programs run, by the names that they were started under. Arguments, which may hold keys, go nowhere."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path, PurePath

_INTERPRETERS = ("node", "bun", "deno", "python", "python3")


def running(programs: Sequence[str]) -> list[int]:
    """The ids of processes of this machine that run one of ``programs``; none where they cannot be listed."""
    return sorted(process for process, words in _listed() if _program(words) in programs)


def _program(words: Sequence[str]) -> str:
    """What ``words`` start: an interpreter stands for its script."""
    names = [PurePath(word).name.removesuffix(".exe") for word in words[:2]]
    return names[1] if len(names) > 1 and names[0] in _INTERPRETERS else "".join(names[:1])


def _listed() -> list[tuple[int, list[str]]]:
    proc = Path("/proc")
    if not (proc / "self" / "cmdline").exists():
        return _from_ps()
    found = []
    for entry in os.listdir(proc):
        if entry.isdecimal():
            with suppress(OSError):
                words = (proc / entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
                found.append((int(entry), words))
    return found


def _from_ps() -> list[tuple[int, list[str]]]:
    try:
        listed = subprocess.run(["ps", "-axo", "pid=,args="], capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    rows = (line.split() for line in listed.stdout.splitlines())
    return [(int(row[0]), row[1:]) for row in rows if row and row[0].isdecimal()]
