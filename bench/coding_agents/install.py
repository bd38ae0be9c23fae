"""Installs the agents below ``.agents``, each by itself: exact versions with their hashes, no scripts of packages run.

Promises: what cannot be installed is left out with the reason, and the others go on. Nothing of a package leaves the
directory, which git ignores.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from bench.coding_agents.agents import NODE, STORED, Agent
from bench.gateway_clients.process import ROOT

PLACE = ROOT / ".agents"
LOCKS = Path(__file__).parent / "locks"
_SECONDS = 600.0
_MACHINES = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}


class Installed(NamedTuple):
    """An agent that can be run: the words its command begins with, and its version; or why it is left out."""

    program: tuple[str, ...] = ()
    version: str = ""
    missing: str = ""


def installed(name: str, seconds: float = _SECONDS) -> Installed:
    """The agent, installed if it was not; each of its packages in so many seconds."""
    agent = STORED[name]
    place = PLACE / name
    try:
        if agent.is_python:
            _from_pypi(place, ROOT / "requirements" / f"agent-{name}.txt", seconds)
        else:
            _from_npm(place, LOCKS / f"{name}.json", seconds)
    except (OSError, subprocess.SubprocessError) as error:
        return Installed(missing=_reason(error))
    program = place.joinpath(*(part.format(platform=_platform()) for part in agent.program))
    if not program.exists():
        return Installed(missing=f"there is none for {_platform()}")
    try:
        by = (str(node(seconds)),) if program.suffix == ".js" else ()
    except OSError as error:
        return Installed(missing=_reason(error))
    return Installed((*by, str(program)), version(name, agent))


def node(seconds: float = _SECONDS) -> Path:
    """Node as pinned, else the machine's own; raises OSError where there is neither."""
    place = PLACE / NODE
    try:
        _from_npm(place, LOCKS / f"{NODE}.json", seconds)
    except (OSError, subprocess.SubprocessError):
        found = None
    else:
        found = place / "node_modules" / f"node-{_platform()}" / "bin" / "node"
    if found is not None and found.exists():
        return found
    machines = shutil.which("node")
    if machines is None:
        raise OSError("Node is not installed")
    return Path(machines)


def node_version() -> str:
    """What the agents run in, for the page."""
    try:
        by = node()
    except OSError:
        return "none"
    said = subprocess.run([str(by), "--version"], capture_output=True, text=True, timeout=60).stdout.strip()
    return f"{said}, pinned" if PLACE in by.parents else f"{said}, the machine's own"


def version(name: str, agent: Agent) -> str:
    """The version that the lock or the requirements name."""
    if agent.is_python:
        text = (ROOT / "requirements" / f"agent-{name}.txt").read_text(encoding="utf-8")
        found = re.search(rf"^{re.escape(agent.package)}==(\S+)", text, re.MULTILINE)
        return found[1] if found else ""
    lock = json.loads((LOCKS / f"{name}.json").read_text(encoding="utf-8"))
    return str(lock["packages"][""]["dependencies"][agent.package])


def _from_npm(place: Path, lock: Path, seconds: float) -> None:
    if _is_ready(place, lock):
        return
    if shutil.which("npm") is None:
        raise FileNotFoundError("npm is not installed")
    place.mkdir(parents=True, exist_ok=True)
    text = lock.read_text(encoding="utf-8")
    wanted = {"private": True, **json.loads(text)["packages"][""]}
    (place / "package.json").write_text(json.dumps(wanted), encoding="utf-8")
    (place / "package-lock.json").write_text(text, encoding="utf-8")
    _told(f"installing {place.name}")
    _run(
        ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1", "--loglevel=error"],
        place,
        seconds,
    )
    _ready(place, lock)


def _from_pypi(place: Path, requirements: Path, seconds: float) -> None:
    if _is_ready(place, requirements):
        return
    _told(f"installing {place.name}")
    _run([sys.executable, "-m", "venv", "--clear", str(place)], ROOT, seconds)
    pip = [str(place / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--no-input", "-qq"]
    _run([*pip, "install", "--require-hashes", "--requirement", str(requirements)], ROOT, seconds)
    _ready(place, requirements)


def _run(command: list[str], directory: Path, seconds: float) -> None:
    subprocess.run(command, cwd=directory, capture_output=True, timeout=seconds, check=True)


def _is_ready(place: Path, pins: Path) -> bool:
    mark = place / ".ready"
    return mark.is_file() and mark.read_text(encoding="utf-8") == _digest(pins)


def _ready(place: Path, pins: Path) -> None:
    (place / ".ready").write_text(_digest(pins), encoding="utf-8")


def _digest(pins: Path) -> str:
    return hashlib.sha256(pins.read_bytes()).hexdigest()


def _platform() -> str:
    machine = platform.machine().lower()
    return f"{platform.system().lower()}-{_MACHINES.get(machine, machine)}"


def _reason(error: OSError | subprocess.SubprocessError) -> str:
    """What is said of it: the first line that names a fault, without addresses."""
    if isinstance(error, subprocess.CalledProcessError):
        lines = (error.stderr or b"").decode(errors="replace").splitlines()
        said = next((line for line in lines if "notarget" in line or "ERROR" in line), "")
        return re.sub(r"\S+://\S+", "…", said) or f"{Path(error.cmd[0]).name} ended with exit code {error.returncode}"
    return str(error)


def _told(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
