"""``python -m thinkback gateway`` as processes, before an upstream that does what a test says, and real stores."""

from __future__ import annotations

import http.client
import io
import json
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, redirect_stdout, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.cli.command import SOURCES
from tests.drive.servers import Asked, Server, head
from thinkback.cli.app import run
from thinkback.model.blocks import ThinkingBlock
from thinkback.model.commits import Commit, Response
from thinkback.stores import open_store

MODEL = "deepseek/deepseek-v4-pro"
PATIENCE = 40.0


class Reply(NamedTuple):
    """What a client read: of a stream that broke off, what came of it."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """The text of a stream of chunks."""
        chunks = [json.loads(line[6:]) for line in self.body.splitlines() if line.startswith(b"data: {")]
        return "".join(c["delta"].get("content") or "" for chunk in chunks for c in chunk.get("choices", ()))

    @property
    def is_acknowledged(self) -> bool:
        """Whether the last event was read, and none of an error."""
        return self.body.endswith(b"data: [DONE]\n\n") and b'"error"' not in self.body


def wait_until(holds: Callable[[], object], what: str, seconds: float = PATIENCE) -> None:
    """Ask until it holds."""
    end = time.monotonic() + seconds
    turn = threading.Event()
    while not holds():
        assert time.monotonic() < end, f"waited in vain: {what}"
        turn.wait(0.02)


class Provider:
    """An upstream of chat completions. It answers a question with ``answer``, reasoned ``thought``; both name it.

    A question that holds ``[hold]`` gets its first chunk, and the rest once ``release`` is set.
    """

    def __init__(self) -> None:
        self.release = threading.Event()
        self.held = threading.Semaphore(0)
        self.left = 0
        self._server = Server(self._answer)

    def __enter__(self) -> Provider:
        self._server.__enter__()
        return self

    def __exit__(self, *why: object) -> None:
        self.release.set()
        self._server.__exit__(*why)

    @property
    def url(self) -> str:
        """Its base URL."""
        return f"{self._server.url}/v1"

    @property
    def asked(self) -> list[Any]:
        """The bodies of the requests so far."""
        return [json.loads(asked.body) for asked in self._server.asked]

    def _answer(self, server: Server, asked: Asked) -> Iterator[bytes]:
        body = json.loads(asked.body)
        question = next(m["content"] for m in reversed(body["messages"]) if m["role"] == "user")
        deltas = [{"role": "assistant", "reasoning_content": thought(question)}, {"content": answer(question)}]
        chunks = [{"id": "c", "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
        chunks.append({"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        yield head()
        yield _event(chunks[0])
        if "[hold]" in question:
            self.held.release()
            self.release.wait(PATIENCE)
        yield b"".join([*map(_event, chunks[1:]), b"data: [DONE]\n\n"])


def answer(question: str) -> str:
    """What is said to a question."""
    return f"Said of <{question}>."


def thought(question: str) -> str:
    """What is thought of it."""
    return f"Thought of <{question}>."


def _event(value: object) -> bytes:
    return b"data: %s\n\n" % json.dumps(value).encode()


class House:
    """One gateway: a supervisor with its workers, or a process by itself. ``file_limit``: bytes a file may have."""

    program: Sequence[str] = (sys.executable, "-m", "thinkback")

    def __init__(self, place: Path, provider: str, store: str, text: str = "", *, file_limit: int = 0) -> None:
        place.mkdir(parents=True, exist_ok=True)
        self.place, self.store, self._provider, self.file_limit = place, store, provider, file_limit
        self.config = place / "gateway.toml"
        self.configure(text)
        self.start()

    def configure(self, text: str) -> None:
        """Write the configuration; ``text`` begins with lines of ``[server]``."""
        kind = "url" if "://" in self.store else "path"
        head = f'[upstreams.deepseek]\nbase_url = "{self._provider}"\nendpoint = "deepseek"\nkey_env = "UP"\n'
        kept = "" if "[store]" in text else f"[store]\n{kind} = {json.dumps(self.store)}\n"
        secret = '[secrets]\ncurrent = "env:SECRET"\n'
        logs = '[logs]\nformat = "json"\nlevel = "info"\n'
        self.config.write_text(
            f"{head}{secret}{logs}{kept}[routing]\nbreaker_failures = 1000000\n[server]\nport = 0\n{text}"
        )

    def start(self) -> None:
        """Start it, and wait until it listens."""
        limit = self.file_limit
        self._said = self.place / "said"
        with self._said.open("wb") as said, (self.place / "log").open("ab") as log:
            self._seen = log.tell()
            self.process = subprocess.Popen(
                [*self.program, "gateway", "--config", str(self.config)],
                env=self._environment(),
                stdout=said,
                stderr=log,
                preexec_fn=(lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))) if limit else None,
            )
        self.port = 0
        wait_until(self._listens, "the gateway listens")

    def _environment(self) -> dict[str, str]:
        own = {"THINKBACK_CONFIG_DIR": str(self.place), "UP": "sk-upstream", "SECRET": "5" * 64}
        return {**os.environ, "PYTHONPATH": f"{SOURCES}:{SOURCES.parent}", **own}

    def keys(self, *arguments: str) -> str:
        """What ``thinkback gateway keys`` says, run in this process."""
        said = io.StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(said):
            for name, value in self._environment().items():
                patch.setenv(name, value)
            try:
                code = run(["gateway", "keys", *arguments, "--config", str(self.config)])
            except SystemExit as left:
                code = int(left.code or 0)
        assert 0 == code, said.getvalue()
        return said.getvalue()

    def _listens(self) -> bool:
        assert self.process.poll() is None, (self.place / "log").read_text()
        told = re.search(r"serves at http://[^;]*:(\d+);", self._said.read_text())
        self.port = int(told[1]) if told else 0
        return bool(told)

    def events(self, name: str, *, ever: bool = False) -> list[dict[str, Any]]:
        """The lines of the log with that event, since the last start."""
        data = (self.place / "log").read_bytes()[0 if ever else self._seen :]
        rows = [json.loads(line) for line in data.splitlines() if line.startswith(b"{")]
        return [row for row in rows if row.get("event") == name]

    def kill(self) -> None:
        """End it with -9; workers that watch it drain by themselves."""
        self.process.kill()
        self.process.wait(PATIENCE)

    def stop(self) -> int:
        """End it in order; the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)

    def ask(self, body: Mapping[str, Any], path: str = "/v1/chat/completions", **headers: str) -> Reply:
        """One request on a connection of its own; of a connection that breaks, what came."""
        sent = {"content-type": "application/json", **{n.replace("_", "-"): v for n, v in headers.items()}}
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)) as connection:
            connection.request("POST", path, json.dumps(body).encode(), sent)
            response = connection.getresponse()
            got: list[bytes] = []
            with suppress(http.client.IncompleteRead, ConnectionError):
                while piece := response.read1(65_536):
                    got.append(piece)
            return Reply(response.status, {n.lower(): v for n, v in response.getheaders()}, b"".join(got))

    def get(self, path: str) -> Reply:
        """A page."""
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)) as connection:
            connection.request("GET", path)
            response = connection.getresponse()
            return Reply(response.status, {n.lower(): v for n, v in response.getheaders()}, response.read())

    def talk(self, questions: Sequence[str], said: Sequence[str] = (), **headers: str) -> Reply:
        """A request that goes on behind what was ``said`` to the questions before the last."""
        return self.ask(chat(questions, said), **headers)


def chat(questions: Sequence[str], said: Sequence[str] = (), **more: Any) -> dict[str, Any]:
    """A client that keeps texts alone."""
    messages = [{"role": "user", "content": questions[0]}]
    for text, question in zip(said, questions[1:], strict=True):
        messages += [{"role": "assistant", "content": text}, {"role": "user", "content": question}]
    return {"model": MODEL, "messages": messages, **({"stream": True} | more)}


REPLAYS = {"thinkback_set": "reasoning.includeInContext=true"}
"""Headers by which every request carries the reasoning of all turns before it."""


class Found(NamedTuple):
    """What a log holds: thoughts of whole responses and how often each is there, and what fsck says."""

    thoughts: Counter[str]
    problems: list[Any]


def found(store: str) -> Found:
    """What is in the log of the tenant ``default``."""
    place = store if "://" in store else str(Path(store) / "default.db")
    with closing(open_store(place)) as log:
        commits: dict[str, Commit] = {}
        for session in log.list_sessions():
            for ref in log.refs.list(session.id):
                commits |= {commit.hash: commit for commit in log.read(session.id, branch=ref.name)}
        whole = {c.response for c in commits.values() if isinstance(c.value, Response) and c.value.complete}
        thoughts = [
            c.value.thought for c in commits.values() if isinstance(c.value, ThinkingBlock) and c.response in whole
        ]
        return Found(Counter(thoughts), list(log.fsck()))
