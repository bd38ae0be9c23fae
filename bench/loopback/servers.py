"""What is measured: each a process on the second core; on the first are the provider and the client."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from bench.loopback import bodies

AROUND, MEASURED = {0}, {1}
"""The cores: of provider and client, and of what is measured."""
_ROOT = Path(__file__).parents[2]
PEER = _ROOT / ".venv-bench" / "bin" / "litellm"
_KEY = "sk-bench-0123456789abcdef"


class Running(NamedTuple):
    """A server that answers at ``port``."""

    name: str
    port: int
    pid: int

    def memory(self) -> int:
        """Resident bytes."""
        fields = Path(f"/proc/{self.pid}/statm").read_text().split()
        return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")

    def cpu(self) -> float:
        """Seconds of processor that it has used."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def provider() -> Iterator[Running]:
    """The fake provider."""
    with _started([sys.executable, "-m", "bench.loopback.provider"], AROUND) as process:
        yield Running("direct", _told(process), process.pid)


@contextmanager
def bare(upstream: int, place: Path) -> Iterator[Running]:
    """The proxy that forwards bytes."""
    command = [sys.executable, "-m", "bench.bare_proxy", f"http://127.0.0.1:{upstream}"]
    with _started(command, MEASURED) as process:
        yield Running("bare proxy", _told(process), process.pid)


@contextmanager
def gateway(upstream: int, place: Path) -> Iterator[Running]:
    """The gateway, on SQLite that is written through to the disk."""
    port = _free()
    config = place / "gateway.toml"
    config.write_text(
        f"""
[server]
port = {port}
no_auth = true
[store]
path = {json.dumps(str(place / "store"))}
durability = "full"
[upstreams.fake]
endpoint = "deepseek"
base_url = "http://127.0.0.1:{upstream}/v1"
key_env = "BENCH_KEY"
[models."{bodies.MODEL}"]
targets = [{{ upstream = "fake", model = "{bodies.MODEL}" }}]
[logs]
level = "warning"
"""
    )
    command = [sys.executable, "-m", "thinkback", "gateway", "--config", str(config)]
    with _started(command, MEASURED, BENCH_KEY=_KEY, PYTHONPATH=str(_ROOT / "src")) as process:
        _answers(process, port, "/readyz")
        yield Running("gateway", port, process.pid)


@contextmanager
def litellm(upstream: int, place: Path) -> Iterator[Running]:
    """litellm's proxy, without database, callbacks or telemetry."""
    port = _free()
    config = place / "litellm.yaml"
    config.write_text(
        f"""
model_list:
  - model_name: {bodies.MODEL}
    litellm_params:
      model: deepseek/{bodies.MODEL}
      api_base: http://127.0.0.1:{upstream}/v1
      api_key: {_KEY}
litellm_settings:
  telemetry: false
  num_retries: 0
general_settings:
  dangerously_permit_weak_or_unset_master_key: true
"""
    )
    command = [str(PEER), "--config", str(config), "--host", "127.0.0.1", "--port", str(port), "--telemetry", "False"]
    quiet = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR", "LITELLM_MODE": "PRODUCTION"}
    # it imports from two directories above the one that it is started in
    (inner := place / "inner" / "most").mkdir(parents=True)
    with _started(command, MEASURED, inner, **quiet) as process:
        _answers(process, port, "/health/liveliness", seconds=90)
        yield Running("litellm proxy", port, process.pid)


@contextmanager
def _started(
    command: list[str], cores: set[int], directory: Path = _ROOT, **variables: str
) -> Iterator[subprocess.Popen[bytes]]:
    """A process on ``cores`` that knows no proxy of this machine; ended when the context is."""
    environment = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    # byte code is there from the second start on, as where it was installed
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    process = subprocess.Popen(
        command,
        cwd=directory,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL if "BENCH_LOUD" not in os.environ else None,
        env={**environment, **variables},
        preexec_fn=lambda: os.sched_setaffinity(0, cores),
    )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _told(process: subprocess.Popen[bytes]) -> int:
    assert process.stdout is not None
    return int(process.stdout.readline())


def _free() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _answers(process: subprocess.Popen[bytes], port: int, path: str, seconds: float = 20) -> None:
    """Wait until ``path`` gives 200."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with {process.returncode}; BENCH_LOUD=1 shows why")
        try:
            with socket.create_connection(("127.0.0.1", port), 1) as asked:
                asked.sendall(f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: close\r\n\r\n".encode())
                if b" 200 " in asked.recv(64):
                    return
        except OSError:
            pass
        time.sleep(0.01)
    raise RuntimeError(f"the server does not answer at {path}")
