"""A gateway in a process of its own, set up as a person would: one TOML file, keys in the environment, virtual keys."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from bench.gateway_clients.places import ALIASES, PLACES
from bench.gateway_clients.process import ROOT
from bench.peers.places import KEY
from thinkback.servers.gateway.access.keys import Terms, new_key
from thinkback.stores.gateway_state import open_gateway_state
from thinkback.stores.gateway_state.state import GatewayState
from thinkback_referee import Referee

_KEY_ENV = "REFEREE_KEY"
_PATIENCE = 120.0


class Gateway:
    """Its address, and keys for it."""

    def __init__(self, url: str, office: GatewayState) -> None:
        self.url = url
        self._office = office

    def base_url(self, front: str) -> str:
        """As a client of the front is configured."""
        return f"{self.url}/v1" if front.startswith("openai") else self.url

    def key(self, name: str) -> str:
        """A new virtual key, as `thinkback gateway keys create` makes it."""
        secret, row = new_key(Terms(), time.time_ns() // 1000, name=name)
        self._office.keys.create(row)
        return secret


def free_port() -> int:
    """A port of loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def serving(directory: Path, referee: Referee, more: str = "") -> Iterator[Gateway]:
    """A gateway whose upstreams are all the referee's; ``more`` stands behind the rest of its configuration."""
    port = free_port()
    (directory / "gateway.toml").write_text(configuration(directory, port, referee) + more, encoding="utf-8")
    process = start(directory, port)
    try:
        with closing(open_gateway_state(directory / "store")) as office:
            yield Gateway(f"http://127.0.0.1:{port}", office)
    finally:
        process.terminate()
        process.wait(_PATIENCE)


def start(directory: Path, port: int) -> subprocess.Popen[bytes]:
    """The gateway that ``gateway.toml`` in a directory describes, once it is ready."""
    command = _command("--config", str(directory / "gateway.toml"))
    with (directory / "gateway.log").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=_environment(), cwd=ROOT)
    try:
        _wait(process, f"http://127.0.0.1:{port}", directory / "gateway.log")
    except BaseException:
        process.kill()
        process.wait()
        raise
    return process


def configuration(directory: Path, port: int, referee: Referee) -> str:
    """The file: an upstream for each provider, and an alias for each model."""
    parts = [f"[server]\nport = {port}\n", f"[store]\npath = {json.dumps(str(directory / 'store'))}\n"]
    parts.append("[limits]\nper_minute = 1000000\n")
    for name, host in {place.endpoint: place.host for place in PLACES.values()}.items():
        parts.append(
            f"[upstreams.{name}]\nendpoint = {json.dumps(name)}\n"
            f"base_url = {json.dumps(referee.base_url(host))}\nkey_env = {json.dumps(_KEY_ENV)}\n"
        )
    for place in PLACES.values():
        target = f"{{ upstream = {json.dumps(place.endpoint)}, model = {json.dumps(place.model)} }}"
        effort = f'settings = {{ "reasoning.effort" = {json.dumps(place.effort)} }}\n' if place.effort else ""
        parts.append(f"[models.{json.dumps(ALIASES[place.name])}]\ntargets = [{target}]\n{effort}")
    return "\n".join(parts)


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "thinkback", "gateway", *arguments]


def _environment() -> dict[str, str]:
    kept = ("PATH", "HOME", "LANG", "TMPDIR", "SYSTEMROOT")
    found = {name: os.environ[name] for name in kept if name in os.environ}
    return {**found, "PYTHONPATH": str(ROOT / "src"), _KEY_ENV: KEY}


def _wait(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    """Until it is ready."""
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/readyz", timeout=1):
                return
        except (OSError, urllib.error.URLError):
            time.sleep(0.05)
    raise RuntimeError(f"the gateway did not start: {log.read_text(errors='replace')[-2000:]}")
