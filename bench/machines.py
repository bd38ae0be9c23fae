"""``python -m bench.machines``: three gateways on one PostgreSQL behind a TCP balancer, while parts of it die.

Each request of a client takes a connection of its own, so that a tool loop jumps from gateway to gateway. Meanwhile
gateways are killed (-9) and started again, PostgreSQL is restarted in order and crashed, and in the middle its machine
is lost and the standby promoted. Afterwards each answer that a client read to its end must be in the log once, and the
provider must have seen no request without the reasoning of each earlier answer. ``--seed`` repeats the order of events.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import re
import secrets
import socket
import socketserver
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from copy import copy
from pathlib import Path
from typing import Any, NamedTuple

from tests.drive.servers import Asked, Relay, Server, carried, head
from tests.servers.gateway.harness.house import MODEL, REPLAYS, House, Reply
from tests.stores.postgres_server import Server as Postgres
from tests.stores.postgres_server import Standby
from thinkback.model.blocks import ThinkingBlock
from thinkback.model.commits import Commit, Response
from thinkback.stores import open_store

GATEWAYS, CLIENTS, ROUNDS, TURNS = 3, 6, 2, 3
SECONDS = 120.0
CALM = (0.5, 2.5)
"""Seconds between two events, at least and at most."""
MARK = re.compile(r"mark-(\d+)")
LAG = 0.5
"""Seconds by which an asynchronous standby is behind when the machine of the other server is lost."""
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
_ROW = "{:<44} {:>8}  {}"


class Provider:
    """An upstream that answers each request anew, and refuses one that lacks the reasoning of an earlier answer."""

    def __init__(self) -> None:
        self.refused: list[str] = []
        self.answers = 0
        self._lock = threading.Lock()
        self.server = Server(self._answer)

    def _answer(self, server: Server, asked: Asked) -> Iterator[bytes]:
        messages = json.loads(asked.body)["messages"]
        for message in messages:
            said = MARK.findall(json.dumps([message.get("content"), message.get("tool_calls")]))
            thought = MARK.findall(message.get("reasoning_content") or "")
            if message["role"] == "assistant" and set(said) != set(thought):
                self.refused.append(f"answer {said} came with the reasoning {thought}")
                error = json.dumps({"error": {"message": "The reasoning_content must be passed back to the API."}})
                yield head(400, length=len(error), kind="application/json") + error.encode()
                return
        with self._lock:
            self.answers += 1
            mark = f"mark-{self.answers}"
        turn = next(at for at in range(len(messages) - 1, -1, -1) if messages[at]["role"] == "user")
        rounds = sum(message["role"] == "tool" for message in messages[turn:])
        deltas: list[dict[str, Any]] = [{"role": "assistant", "reasoning_content": f"Thought of {mark}."}]
        if rounds < ROUNDS:
            call = {"index": 0, "id": f"call_{mark}", "type": "function"}
            deltas += [{"tool_calls": [{**call, "function": {"name": "look", "arguments": "{}"}}]}]
        else:
            deltas += [{"content": f"Said {mark}."}]
        chunks = [{"id": mark, "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
        finish = "tool_calls" if rounds < ROUNDS else "stop"
        chunks.append({"id": mark, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
        yield head()
        for chunk in chunks:
            yield b"data: %s\n\n" % json.dumps(chunk).encode()
        yield b"data: [DONE]\n\n"


class Balancer(Relay):
    """Hands each connection to the next gateway that takes it, and knows nothing of what goes through."""

    def __init__(self, gateways: Sequence[House]) -> None:
        turns = itertools.count()

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                first = next(turns)
                with suppress(OSError):
                    for at in range(first, first + len(gateways)):
                        with suppress(ConnectionRefusedError):
                            address = "127.0.0.1", gateways[at % len(gateways)].port
                            with socket.create_connection(address) as gateway:
                                for _ in carried(self.request, gateway):
                                    pass
                            return

        super().__init__(Handler)


class Outcome(NamedTuple):
    """An answer that a client read to its end: the id of its response, its mark, and the header about recognition."""

    response: str
    mark: str
    reattach: str


class Clients:
    """Agents at work, each in one conversation after the other, until ``over`` is set."""

    def __init__(self, house: House, port: int) -> None:
        self._front = copy(house)
        self._front.port = port
        self.over = threading.Event()
        self.acknowledged: list[Outcome] = []
        self.failures: Counter[str] = Counter()

    def work(self, number: int) -> None:
        """One agent."""
        for talk in itertools.count():
            messages: list[dict[str, Any]] = []
            for turn in range(TURNS):
                messages.append({"role": "user", "content": f"agent {number}, talk {talk}, question {turn}"})
                while message := self._next(messages):
                    messages.append(message)
                    if "tool_calls" not in message:
                        break
                    result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "seen"}
                    messages.append(result)
                if message is None:
                    break
            if self.over.is_set():
                return

    def _next(self, messages: list[dict[str, Any]]) -> dict[str, Any] | None:
        """What comes next, as a client keeps it that forgets reasoning; asked again until it comes.

        ``None`` at the end, and where the provider does not go on with this conversation.
        """
        body = {"model": MODEL, "messages": messages, "tools": [TOOL], "stream": True}
        while not self.over.is_set():
            try:
                reply = self._front.ask(body, **REPLAYS)
            except OSError as error:
                self.failures[type(error).__name__] += 1
                self.over.wait(0.05)
                continue
            if not reply.is_acknowledged:
                self.failures[f"status {reply.status}"] += 1
                if reply.status == 400:
                    return None
                self.over.wait(0.05)
                continue
            (mark,) = set(MARK.findall(reply.body.decode()))
            headers = reply.headers
            self.acknowledged.append(Outcome(headers["thinkback-response"], mark, headers["thinkback-reattach"]))
            return _message(reply)
        return None


def _message(reply: Reply) -> dict[str, Any]:
    chunks = [json.loads(line[6:]) for line in reply.body.splitlines() if line.startswith(b"data: {")]
    deltas = [choice["delta"] for chunk in chunks for choice in chunk.get("choices", ())]
    calls = [call for delta in deltas for call in delta.get("tool_calls") or ()]
    text = "".join(delta.get("content") or "" for delta in deltas)
    if not calls:
        return {"role": "assistant", "content": text}
    call = {"id": calls[0]["id"], "type": "function", "function": {"name": "look", "arguments": "{}"}}
    return {"role": "assistant", "content": text or None, "tool_calls": [call]}


class Seen(NamedTuple):
    """What came of it all."""

    acknowledged: list[Outcome]
    failures: Counter[str]
    refused: list[str]
    events: Counter[str]
    stored: Counter[tuple[str, str]]
    problems: list[Any]

    @property
    def lost(self) -> list[Outcome]:
        """Acknowledged, and not in the log."""
        return [each for each in self.acknowledged if (each.response, each.mark) not in self.stored]

    @property
    def doubled(self) -> list[tuple[str, str]]:
        """In the log more than once."""
        return [of for of, count in self.stored.items() if count > 1]

    @property
    def unrecognised(self) -> list[Outcome]:
        """Requests whose earlier answers were not all recognised."""
        return [each for each in self.acknowledged if each.reattach not in ("complete", "not-needed")]


def stored(url: str) -> tuple[Counter[tuple[str, str]], list[Any]]:
    """How often a whole response is in the log, by its id and mark, and what fsck finds."""
    found: Counter[tuple[str, str]] = Counter()
    with closing(open_store(url)) as log:
        commits: dict[str, Commit] = {}
        for session in log.list_sessions():
            for ref in log.refs.list(session.id):
                commits |= {commit.hash: commit for commit in log.read(session.id, branch=ref.name)}
        whole = {each.response for each in commits.values() if isinstance(each.value, Response) and each.value.complete}
        for each in commits.values():
            if isinstance(each.value, ThinkingBlock) and each.response in whole:
                found.update((each.response, mark) for mark in MARK.findall(each.value.thought))
        return found, list(log.fsck())


class Trouble:
    """What goes wrong, in an order that the seed fixes."""

    def __init__(
        self, seed: int, gateways: Sequence[House], postgres: Postgres, standby: Standby, *, lag: float
    ) -> None:
        self._random, self._lag = random.Random(seed), lag
        self._gateways, self._postgres, self._standby = gateways, postgres, standby
        self.is_over = False
        self.events: Counter[str] = Counter()

    def make(self, until: float, clients: Clients) -> None:
        """Event after event; the machine of PostgreSQL is lost in the middle of the time."""
        began = time.monotonic()
        while time.monotonic() < until:
            clients.over.wait(self._random.uniform(*CALM))
            if not self.is_over and time.monotonic() > (began + until) / 2:
                self._event("fail-over to the standby", lambda: self._fail_over(clients))
            elif self._random.random() < 0.75 or self.is_over:
                self._event("gateway killed", self._kill)
            else:
                mode = self._random.choice(("fast", "immediate"))
                self._event(f"PostgreSQL restarted ({mode})", lambda mode=mode: self._postgres.restart(mode))

    def _event(self, name: str, happen: Any) -> None:
        self.events[name] += 1
        happen()

    def _kill(self) -> None:
        house = self._random.choice(self._gateways)
        house.kill()
        house.start()

    def _fail_over(self, clients: Clients) -> None:
        self.is_over = True
        if self._lag:
            self._standby.fall_behind()
            clients.over.wait(self._lag)
        self._postgres.crash()
        self._standby.promote()


def run(seconds: float, seed: int, *, synchronous: bool = True) -> Seen:
    """All of it."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="thinkback-machines-")))
        provider = Provider()
        stack.enter_context(provider.server)
        postgres = stack.enter_context(Postgres(durable=True))
        postgres.make_database("machines")
        standby = postgres.follow(synchronous=synchronous)
        stack.callback(standby.stop)
        hosts = f"{postgres.place},{standby.place}"
        url = f"postgresql://keeper@/machines?host={hosts}&target_session_attrs=read-write"
        text = f'no_auth = true\n[store]\nurl = "{url}"\n'
        gateways: list[House] = []
        for number in range(GATEWAYS):
            gateways.append(House(directory / str(number), f"{provider.server.url}/v1", url, text))
            stack.callback(gateways[-1].kill)
        balancer = stack.enter_context(closing(Balancer(gateways)))
        clients = Clients(gateways[0], balancer.port)
        trouble = Trouble(seed, gateways, postgres, standby, lag=0.0 if synchronous else LAG)
        with ThreadPoolExecutor(CLIENTS) as executor:
            running = [executor.submit(clients.work, number) for number in range(CLIENTS)]
            try:
                trouble.make(time.monotonic() + seconds, clients)
                clients.over.wait(CALM[1])
            finally:
                clients.over.set()
            for each in running:
                each.result()
        codes = [house.stop() for house in gateways]
        assert codes == [0] * GATEWAYS, codes
        found, problems = stored(url)
    return Seen(clients.acknowledged, clients.failures, provider.refused, trouble.events, found, problems)


def rows(seen: Seen) -> Iterator[tuple[str, int, bool | None]]:
    """Name, figure, and whether it is as it must be."""
    yield "answers read to their end", len(seen.acknowledged), len(seen.acknowledged) > 0
    for name, count in sorted(seen.events.items()):
        yield name, count, None
    for name, count in sorted(seen.failures.items()):
        yield f"asked again after {name}", count, None
    yield "acknowledged answers that are lost", len(seen.lost), not seen.lost
    yield "answers that are in the log twice", len(seen.doubled), not seen.doubled
    yield "requests not recognised in full", len(seen.unrecognised), not seen.unrecognised
    yield "requests refused for lack of reasoning", len(seen.refused), not seen.refused
    yield "problems that fsck finds", len(seen.problems), not seen.problems


def main() -> int:
    """Print the table; 1 where something is lost, doubled or not recognised."""
    parser = argparse.ArgumentParser(prog="python -m bench.machines", description="Gateways that share a PostgreSQL.")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(2**32))
    parser.add_argument(
        "--asynchronous", action="store_true", help="a standby that is half a second behind: what is lost?"
    )
    options = parser.parse_args()
    kind = "asynchronous" if options.asynchronous else "synchronous"
    print(f"{GATEWAYS} gateways, {CLIENTS} clients, {kind} standby, {options.seconds:.0f} s, seed {options.seed}")
    print(f"{os.cpu_count()} CPUs, load before {os.getloadavg()[0]:.1f}\n", flush=True)
    seen = run(options.seconds, options.seed, synchronous=not options.asynchronous)
    failed = False
    for name, figure, good in rows(seen):
        failed = failed or (good is False and not options.asynchronous)
        print(_ROW.format(name, figure, {True: "met", False: "short", None: ""}[good]).rstrip())
    for each in (*seen.lost[:3], *seen.doubled[:3], *seen.unrecognised[:3], *seen.refused[:3], *seen.problems[:3]):
        print(f"    {each}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
