"""The referee as a server on loopback: judges each request, notes it, and lets the scripted model answer.

``Referee`` is a context manager around one listening socket and its threads. It promises that what arrived is in
``requests`` before the first byte of the answer leaves, and that closing it interrupts stalls and joins every thread.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from types import TracebackType
from typing import Self

from .house import house_step
from .jsons import JsonObject, as_object, as_text, compact, strict_loads
from .judge import judge
from .ledger import Ledger, Mint
from .profiles import HOSTS, Host, Profile, models_of, profile_for
from .render import Answer, arguments_text, field_of
from .request import Request
from .script import HttpError, Script, Step
from .transmission import Action, Write, transmit_stream, transmit_whole
from .transport import Connections, Incoming, Reply
from .usage import cache_hit, count_usage, prompt_words
from .verdict import ACCEPTED, Verdict, refuse, unauthorized, unknown_model

BAD_KEY = "bad-key"
_CHAT = ("/chat/completions", "/v1/chat/completions", "/openai/v1/chat/completions")
_MODELS = ("/models", "/v1/models", "/openai/v1/models")
_SECRET_HEADERS = frozenset({"authorization", "proxy-authorization", "x-api-key", "api-key", "cookie"})
# A server that runs for days must not keep everything it ever saw.
_KEPT_REQUESTS = 10_000
_KEPT_PROMPTS = 32


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


@dataclass(slots=True)
class _Memory:
    """What the referee remembers between requests; replaced whole by ``reset``."""

    ledger: Ledger = field(default_factory=Ledger)
    script: deque[Step] = field(default_factory=deque)
    requests: list[Exchange] = field(default_factory=list)
    prompts: dict[tuple[str, str], deque[list[str]]] = field(default_factory=dict)


class Referee:
    """A strict stand-in for reasoning providers: ``with Referee() as referee: ... referee.base_url("deepseek")``.

    ``script`` is consumed one step per accepted request; after it the house script answers. ``pace`` is the pause
    between stream events in seconds. ``seed`` varies code words and ids. ``report`` is called with every exchange,
    from the thread that serves it.
    """

    def __init__(
        self,
        script: Script | None = None,
        pace: float = 0.0,
        seed: int = 0,
        *,
        address: tuple[str, int] = ("127.0.0.1", 0),
        report: Callable[[Exchange], None] | None = None,
    ) -> None:
        self._memory = _Memory(script=deque(script or ()))
        self._pace = pace
        self._seed = seed
        self._address = address
        self._report = report
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
        if host not in HOSTS:
            raise ValueError(f"unknown persona {host!r}; the referee plays {', '.join(HOSTS)}")
        return f"{self.url}/{host}"

    @property
    def requests(self) -> list[Exchange]:
        """What arrived, in order (a copy)."""
        with self._lock:
            return list(self._memory.requests)

    @property
    def ledger(self) -> Ledger:
        """What was minted so far."""
        return self._memory.ledger

    @property
    def unused(self) -> int:
        """How many scripted steps no request has consumed."""
        with self._lock:
            return len(self._memory.script)

    def push(self, *steps: Step) -> None:
        """Append steps to the script."""
        with self._lock:
            self._memory.script.extend(steps)

    def reset(self) -> None:
        """Forget requests, ledger, script and prompts, as if just started."""
        with self._lock:
            self._memory = _Memory()

    def respond(self, incoming: Incoming) -> Reply:
        """Judge and answer one request; thread-safe, and pure but for the referee's memory."""
        name, _, rest = incoming.path.split("?")[0].lstrip("/").partition("/")
        if incoming.method == "GET" and name == "healthz":
            return Reply.json(200, {"status": "ok"})
        host = HOSTS.get(name)
        route = {("POST", path): self._chat for path in _CHAT} | {("GET", path): self._models for path in _MODELS}
        handler = route.get((incoming.method, f"/{rest}"))
        if host is None or handler is None:
            return Reply.json(404, {"error": {"message": f"no such path: {incoming.path}", "type": "not_found_error"}})
        return handler(host, incoming)

    def _models(self, host: Host, incoming: Incoming) -> Reply:
        if not _authorized(incoming):
            return _refusal(unauthorized(host))
        listed = [{"id": model, "object": "model", "owned_by": host.name} for model in models_of(host.name)]
        return Reply.json(200, {"object": "list", "data": listed})

    def _chat(self, host: Host, incoming: Incoming) -> Reply:
        with self._lock:
            reply, exchange = self._decide(host, incoming)
            self._memory.requests.append(exchange)
            del self._memory.requests[:-_KEPT_REQUESTS]
        if self._report is not None:
            self._report(exchange)
        return reply

    def _decide(self, host: Host, incoming: Incoming) -> tuple[Reply, Exchange]:
        body, verdict = _parse(host, incoming)
        profile = profile_for(host.name, _model(body))
        if verdict.ok:
            verdict = judge(profile, body, self._memory.ledger) if profile else unknown_model(host, _model(body))
        if profile is None or not verdict.ok:
            return _refusal(verdict), _exchange(host, incoming, body, verdict, verdict.status)
        reply, step = self._answer(Request(profile, body))
        return reply, _exchange(host, incoming, body, verdict, reply.status, step)

    def _answer(self, request: Request) -> tuple[Reply, Step]:
        script = self._memory.script
        step = script.popleft() if script else house_step(request, self._seed)
        if isinstance(step.fault, HttpError):
            return _http_error(step.fault), step
        answer = self._prepare(request, step)
        self._memory.ledger.add(_mint(answer))
        if request.body.get("stream"):
            return Reply.stream(transmit_stream(answer, self._pace)), step
        return Reply(200, {"content-type": "application/json"}, transmit_whole(answer)), step

    def _prepare(self, request: Request, step: Step) -> Answer:
        digest = sha256(f"{self._seed}:{compact(request.body)}".encode()).hexdigest()
        prefix = request.profile.host.call_prefix
        calls = tuple(
            (call.id or prefix + sha256(f"{digest}:{index}".encode()).hexdigest()[:20], call.name, arguments_text(call))
            for index, call in enumerate(step.tool_calls)
        )
        prompt = prompt_words(request)
        usage = count_usage(request, step, len(prompt), self._cache_hit(request.profile, prompt))
        return Answer(request, step, digest[:24], field_of(request, step), calls, usage)

    def _cache_hit(self, profile: Profile, prompt: list[str]) -> int:
        earlier = self._memory.prompts.setdefault((profile.host.name, profile.reported), deque(maxlen=_KEPT_PROMPTS))
        hit = cache_hit(prompt, earlier)
        earlier.append(prompt)
        return hit


def serve(
    host: str = "127.0.0.1",
    port: int = 8473,
    *,
    pace: float = 0.0,
    seed: int = 0,
    script: Script | None = None,
    report: Callable[[Exchange], None] | None = None,
    ready: Callable[[Referee], None] | None = None,
    stop: threading.Event | None = None,
) -> None:
    """Serve until ``stop`` is set or the user interrupts; ``ready`` is called once with the serving referee."""
    with Referee(script, pace, seed, address=(host, port), report=report) as referee:
        if ready is not None:
            ready(referee)
        try:
            (stop or threading.Event()).wait()
        except KeyboardInterrupt:
            return


def _authorized(incoming: Incoming) -> bool:
    scheme, _, key = incoming.headers.get("authorization", "").partition(" ")
    return scheme.lower() == "bearer" and key.strip() not in ("", BAD_KEY)


def _parse(host: Host, incoming: Incoming) -> tuple[JsonObject, Verdict]:
    if not _authorized(incoming):
        return {}, unauthorized(host)
    try:
        body = strict_loads(incoming.body)
    except (ValueError, RecursionError) as error:
        return {}, refuse(host, f"Failed to parse the request body as JSON: {error}", "invalid JSON")
    if not isinstance(body, dict):
        return {}, refuse(host, "The request body must be a JSON object", "body is not an object")
    if not _model(body):
        return dict(as_object(body)), refuse(host, "missing field `model`", "no model")
    return dict(as_object(body)), ACCEPTED


def _model(body: Mapping[str, object]) -> str:
    return as_text(body.get("model"))


def _exchange(
    host: Host, incoming: Incoming, body: JsonObject, verdict: Verdict, status: int, step: Step | None = None
) -> Exchange:
    headers = {name: value for name, value in incoming.headers.items() if name not in _SECRET_HEADERS}
    return Exchange(incoming.path, headers, incoming.body, body, verdict, status, host.name, _model(body), step)


def _refusal(verdict: Verdict) -> Reply:
    reason = verdict.reason.encode("ascii", "backslashreplace").decode().replace("\r", " ").replace("\n", " ")
    return Reply.json(verdict.status, verdict.body or {}, {"x-referee": reason})


def _http_error(fault: HttpError) -> Reply:
    text = fault.body if isinstance(fault.body, str) else compact(fault.body)
    kind = "text/plain" if isinstance(fault.body, str) else "application/json"
    actions: list[Action] = [Write(text.encode())]
    return Reply(fault.status, {"content-type": kind, **_lower(fault.headers.items())}, actions)


def _lower(items: Iterable[tuple[str, str]]) -> dict[str, str]:
    return {name.lower(): value for name, value in items}


def _mint(answer: Answer) -> Mint:
    profile = answer.request.profile
    tagged = answer.field == "tags"
    reasoning = "" if answer.field == "hidden" else answer.step.reasoning
    calls = tuple(identifier for identifier, _, _ in answer.calls)
    return Mint(profile.host.name, profile.model, reasoning, answer.text, calls, tagged)
