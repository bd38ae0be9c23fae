"""The referee as a server on loopback: judges each request, notes it, and lets the scripted model answer.

``Referee`` is a context manager around one listening socket and its threads. It promises that what arrived is in
``requests`` before the first byte of the answer leaves, and that closing it interrupts stalls and joins every thread.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from types import TracebackType
from typing import Self

from .chat import CHAT
from .chat.ledger import Ledger
from .credentials import clean_path, without_secrets
from .house import house_step
from .jsons import JsonObject, as_text, compact, read_object
from .persona import AnyPersona, Asked, L, Persona, Provider, R, View
from .personas import by_host, make_personas
from .played import fitted
from .script import HttpError, RejectCarrier, Script, Step
from .transmission import Action, Write, transmit_stream, transmit_whole
from .transport import Connections, Incoming, Reply
from .verdict import Verdict
from .wording import wording

# A server that runs for days must not keep everything it ever saw.
_KEPT_REQUESTS = 10_000
_HALF_A_CHARACTER = "The request body is not valid Unicode: it holds a lone surrogate"


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request as it arrived, and what became of it."""

    path: str
    headers: Mapping[str, str]
    """Lower-case names; without keys."""
    raw: bytes
    body: JsonObject
    """The parsed body; empty when it was not a JSON object."""
    verdict: Verdict
    status: int
    """What was answered: the verdict's status, or that of a scripted fault."""
    host: str = ""
    model: str = ""
    step: Step | None = None
    """What the scripted model said."""


class Referee:
    """A strict stand-in for reasoning providers: ``with Referee() as referee: ... referee.base_url("deepseek")``.

    ``script`` is consumed one step per accepted request; after it the house script answers. ``pace`` is the pause
    between stream events in seconds. ``seed`` varies code words and ids. ``report`` is called with every exchange,
    from the thread that serves it, and ``ended`` when no more of the answer is written, with whether that was all.
    ``drives``: the script is for agents, with patterns for names of tools (``played``).
    ``house`` answers behind the script, and where there is none: from the conversation and the seed alone.
    """

    def __init__(
        self,
        script: Script | None = None,
        pace: float = 0.0,
        seed: int = 0,
        *,
        address: tuple[str, int] = ("127.0.0.1", 0),
        report: Callable[[Exchange], None] | None = None,
        ended: Callable[[Exchange, bool], None] | None = None,
        drives: bool = False,
        house: Callable[[View, int], Step] = house_step,
    ) -> None:
        self._drives = drives
        self._house = house
        self._personas = make_personas()
        self._by_host = by_host(self._personas)
        self._script = deque(script or ())
        self._requests: list[Exchange] = []
        self._pace = pace
        self._seed = seed
        self._address = address
        self._report, self._ended = report, ended
        self._lock = threading.Lock()
        self._connections: Connections | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> None:
        """Bind the address and begin to serve; does nothing when already serving."""
        if self._connections is None:
            self._connections = Connections(self._address, self.respond)

    def close(self) -> None:
        """Stop serving: interrupt what is being sent, close all connections, join all threads."""
        connections, self._connections = self._connections, None
        if connections is not None:
            connections.close()

    @property
    def url(self) -> str:
        """The server's address, ``http://127.0.0.1:PORT``; raises RuntimeError while it does not serve."""
        if self._connections is None:
            raise RuntimeError("the referee is not serving; use it as a context manager or call start()")
        return self._connections.url

    def base_url(self, host: str) -> str:
        """The base URL of a persona, as a client of that provider is configured with it."""
        if host not in self._by_host:
            raise ValueError(f"unknown persona {host!r}; the referee plays {', '.join(self._by_host)}")
        return f"{self.url}/{host}{self._by_host[host][0].provider.hosts[host]}"

    @property
    def requests(self) -> list[Exchange]:
        """What arrived, in order (a copy)."""
        with self._lock:
            return list(self._requests)

    @property
    def ledger(self) -> Ledger:
        """What chat completions minted so far."""
        return self.persona(CHAT).ledger

    def persona(self, provider: Provider[R, L]) -> Persona[R, L]:
        """The persona that plays a provider; raises LookupError when there is none."""
        for persona in self._personas:
            if persona.provider is provider:
                return persona
        raise LookupError(f"the referee does not play {', '.join(provider.hosts)}")

    @property
    def unused(self) -> int:
        """How many scripted steps no request has consumed."""
        with self._lock:
            return len(self._script)

    def push(self, *steps: Step) -> None:
        """Append steps to the script."""
        with self._lock:
            self._script.extend(steps)

    def reset(self) -> None:
        """Forget requests, what was minted, script and prompts, as if just started."""
        with self._lock:
            self._script.clear()
            self._requests.clear()
            for persona in self._personas:
                persona.reset()

    def forget_requests(self) -> None:
        """Forget what arrived, and nothing else."""
        with self._lock:
            self._requests.clear()

    def respond(self, incoming: Incoming) -> Reply:
        """Judge and answer one request; thread-safe, and pure but for the referee's memory."""
        host, _, rest = incoming.path.split("?")[0].lstrip("/").partition("/")
        if incoming.method == "GET" and host == "healthz":
            return Reply.json(200, {"status": "ok"})
        with self._lock:
            found = self._read(host, f"/{rest}", incoming)
            if found is None:
                message = f"no such path: {clean_path(incoming.path)}"
                return Reply.json(404, {"error": {"message": message, "type": "not_found_error"}})
            try:
                reply, exchange = self._decide(*found, incoming)
            except UnicodeEncodeError:  # half a character somewhere; providers refuse it, each in its own words
                error = {"message": _HALF_A_CHARACTER, "type": "invalid_request_error"}
                return Reply.json(400, {"error": error})
            if incoming.method == "GET":
                return reply
            self._requests.append(exchange)
            del self._requests[:-_KEPT_REQUESTS]
        if self._report is not None:
            self._report(exchange)
        return reply if self._ended is None else replace(reply, ended=partial(self._ended, exchange))

    def _read(self, host: str, path: str, incoming: Incoming) -> tuple[AnyPersona, str, Asked | Verdict] | None:
        for persona in self._by_host.get(host, ()):
            asked = persona.read(host, path, incoming)
            if asked is not None:
                return persona, host, asked
        return None

    def _decide(
        self, persona: AnyPersona, host: str, asked: Asked | Verdict, incoming: Incoming
    ) -> tuple[Reply, Exchange]:
        verdict = asked if isinstance(asked, Verdict) else persona.judge(asked)
        if isinstance(asked, Verdict) or not verdict.ok:
            body = _body(incoming) if isinstance(asked, Verdict) else asked.body
            model = as_text(body.get("model")) if isinstance(asked, Verdict) else asked.model
            return _at_once(verdict), _exchange(host, incoming, body, verdict, verdict.status, model)
        reply, step = self._answer(persona, asked)
        return reply, _exchange(host, incoming, asked.body, verdict, reply.status, asked.model, step)

    def _answer(self, persona: AnyPersona, asked: Asked) -> tuple[Reply, Step]:
        step = self._step(persona, asked)
        if isinstance(step.fault, HttpError):
            return _http_error(step.fault), step
        if isinstance(step.fault, RejectCarrier):
            return _at_once(persona.reject(asked)), step
        rendered = persona.render(asked, step, self.digest(asked, step))
        if asked.stream:
            actions = transmit_stream(rendered, step, self._pace, persona.provider.broken)
            return Reply.stream(actions, rendered.content_type), step
        return Reply(200, {"content-type": rendered.whole_type}, transmit_whole(rendered.whole, step)), step

    def _step(self, persona: AnyPersona, asked: Asked) -> Step:
        """What the model says: the next step of the script, unless it waits for tools, else what it says by itself."""
        if self._script and not self._drives:
            return self._script.popleft()
        view = persona.view(asked)
        if self._script and view.tools:
            return fitted(self._script.popleft(), view, self._seed)
        return self._house(view, self._seed)

    def digest(self, asked: Asked, step: Step) -> str:
        """What ids and opaque values of an answer are made of; a subclass may leave out what shall not matter."""
        said = replace(step, fault=None, pace=None, split_every=0)
        seen = f"{self._seed}:{asked.host}:{asked.model}:{compact(asked.body)}:{said}"
        return sha256(seen.encode("utf-8", "surrogatepass")).hexdigest()


def serve(
    host: str = "127.0.0.1",
    port: int = 8473,
    *,
    pace: float = 0.0,
    seed: int = 0,
    script: Script | None = None,
    drives: bool = False,
    report: Callable[[Exchange], None] | None = None,
    ready: Callable[[Referee], None] | None = None,
    stop: threading.Event | None = None,
) -> None:
    """Serve until ``stop`` is set or the user interrupts; ``ready`` is called once with the serving referee."""
    with Referee(script, pace, seed, address=(host, port), report=report, drives=drives) as referee:
        if ready is not None:
            ready(referee)
        try:
            (stop or threading.Event()).wait()
        except KeyboardInterrupt:
            return


def _body(incoming: Incoming) -> JsonObject:
    found = read_object(incoming.body)
    return found if isinstance(found, dict) else {}


def _exchange(
    host: str, incoming: Incoming, body: JsonObject, verdict: Verdict, status: int, model: str, step: Step | None = None
) -> Exchange:
    headers = without_secrets(incoming.headers)
    return Exchange(clean_path(incoming.path), headers, incoming.body, body, verdict, status, host, model, step)


def _at_once(verdict: Verdict) -> Reply:
    said = verdict.reason.encode("ascii", "backslashreplace").decode()
    # a header has no line breaks and no control characters
    reason = "".join(letter if letter.isprintable() else " " for letter in said)
    named = {"x-referee": reason} if reason else {}
    if whose := wording(verdict):
        named["x-referee-wording"] = whose
    return Reply.json(verdict.status, {} if verdict.body is None else verdict.body, {**verdict.headers, **named})


def _http_error(fault: HttpError) -> Reply:
    text = fault.body if isinstance(fault.body, str) else compact(fault.body)
    kind = "text/plain" if isinstance(fault.body, str) else "application/json"
    actions: list[Action] = [Write(text.encode())]
    return Reply(fault.status, {"content-type": kind, **_lower(fault.headers.items())}, actions)


def _lower(items: Iterable[tuple[str, str]]) -> dict[str, str]:
    return {name.lower(): value for name, value in items}
