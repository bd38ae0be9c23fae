"""An exchange written down as the commands it gives and how they are answered, in the order it happens.

``play << Kind`` is what the exchange must want next (the command is in ``play.command``), ``play >> value`` how it is
answered: an exception as a failure, an ``Interrupt`` as one, anything else as the command's answer. ``asks`` and
``keeps`` do both, with a log in memory::

    Playbook(question()) << Choose >> ROUTE << Settle >> Settings() << Send >> HEAD << Receive >> b"..."
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import count
from typing import Any

import msgspec

from tests.turn.playbook import ENDPOINT, NOW, RULE, target
from thinkback.log.protocol import Store as Log
from thinkback.model.rule import Rule
from thinkback.model.target import Settings
from thinkback.proxy import events
from thinkback.proxy.events import Answered, Command, Failed, Interrupt, Route
from thinkback.proxy.exchange import Exchange
from thinkback.proxy.request_view import Client, Received
from thinkback.session.endpoint_config import EndpointConfig
from thinkback.stores import open_store
from thinkback.turn.credentials import Credentials
from thinkback.turn.plan import History

SSE = events.Head(200, {"content-type": "text/event-stream"})
CLIENT = Client("default", "k1")
LOGS: list[Log] = []
"""The logs that playbooks opened."""


class Nobody:
    """Puts no credentials on."""

    waits = False

    def prepare(self) -> None:
        """There is nothing to find."""

    def __call__(self, url: str, headers: Mapping[str, str], body: object) -> Credentials:
        return Credentials({})


class Open:
    """Tokens that anybody can open."""

    def seal(self, data: bytes, scope: bytes) -> str:
        """``data`` in letters."""
        return f"tb1.{data.hex()}"

    def open(self, token: str, scope: bytes) -> bytes | None:
        """What such a token holds."""
        return bytes.fromhex(token.removeprefix("tb1."))


def route(rule: Rule = RULE, name: str = "house") -> Route:
    """A place under ``rule``."""
    return Route(name, EndpointConfig("thinker"), target(rule), Nobody(), {}, {}, {})


def to(dialect: str, path: str, **fields: Any) -> Route:
    """A place of ``dialect``."""
    rule = Rule(id="house", endpoint="house", source="the tests", since="2025-01-01", form="none")
    endpoint = msgspec.structs.replace(ENDPOINT, dialect=dialect, path=path, **fields)
    return msgspec.structs.replace(route(), target=target(rule, endpoint=endpoint))


class Playbook:
    """One exchange; ``log`` is what ``asks`` and ``keeps`` answer from."""

    def __init__(
        self,
        body: Mapping[str, Any],
        *,
        log: Log | None = None,
        client: Client = CLIENT,
        agent: str = "",
        front: str = "openai-chat",
        model: str = "",
    ) -> None:
        self._log = log
        self.body = b""
        self.status = 0
        self.headers: Mapping[str, str] = {}
        self.sent: list[dict[str, Any]] = []
        self._now = count(NOW)
        received = Received(front, json.dumps(body).encode(), {"user-agent": agent}, client, model=model)
        self.exchange = Exchange(received, Open(), 1000, next(self._now), 0.5, degraded=False, rests=False)
        self.open = self.exchange.begin()
        self._show()

    @property
    def log(self) -> Log:
        """What the exchange looks up and stores in; closed behind the test."""
        if self._log is None:
            self._log = open_store(":memory:")
            LOGS.append(self._log)
        return self._log

    @property
    def command(self) -> Command:
        """What the exchange wants."""
        assert self.open is not None, "the exchange is over"
        return self.open

    def __lshift__(self, kind: type) -> Playbook:
        """Expect a command of this kind."""
        assert isinstance(self.open, kind), self.open
        return self

    def __rshift__(self, answer: Any) -> Playbook:
        """Answer it."""
        if isinstance(self.open, events.Send):
            self.sent.append(json.loads(self.open.body))
        event: events.Event
        if isinstance(answer, Interrupt):
            event = answer
        else:
            event = Failed(answer) if isinstance(answer, Exception) else Answered(answer)
        self.open = self.exchange.on(event, next(self._now))
        self._show()
        return self

    def _show(self) -> None:
        """What goes to the client needs no line of its own; only that it goes out before what follows. Nothing waits
        to be stored.
        """
        while isinstance(self.open, events.Start | events.Write | events.Judged | events.Unstored | events.FindErasure):
            if isinstance(self.open, events.Unstored | events.FindErasure):
                nothing = frozenset[bytes]() if isinstance(self.open, events.Unstored) else False
                self.open = self.exchange.on(Answered(nothing), next(self._now))
                continue
            if isinstance(self.open, events.Start):
                self.status, self.headers = self.open.status, self.open.headers
            elif isinstance(self.open, events.Write):
                self.body += self.open.data
            if isinstance(self.open, events.Write) and self.stops_at and self.stops_at in self.body:
                return
            self.open = self.exchange.on(Answered(), next(self._now))

    stops_at = b""
    """A write with this in it is not answered."""

    def asks(self) -> Playbook:
        """Everything that the exchange looks up is answered from the log."""
        while isinstance(self.open, events.Question):
            match self.open:
                case events.LookUp(digests=digests, scope=scope, most=most):
                    self >> self.log.recognition.lookup(scope, digests, most)
                case events.ReadLines(places=places):
                    self >> {place: self.log.read_to(*place) for place in places}
                case events.ReadHistory(session=session, head=head):
                    self >> History(self.log.read_to(session, head))
                case _:
                    raise AssertionError(self.open)
        return self

    def routes(self, to: Route, settings: Settings | None = None) -> Playbook:
        """The request goes to this place."""
        return self << events.Choose >> to << events.Settle >> (settings or Settings()) << events.Send

    def answers(self, *pieces: bytes, head: events.Head = SSE) -> Playbook:
        """A whole response."""
        self << events.Send >> head
        for piece in (*pieces, b""):
            self << events.Receive >> piece
        return self

    def refuses(self, status: int, message: str) -> Playbook:
        """An HTTP error in the common shape."""
        body = json.dumps({"error": {"message": message}}).encode()
        return self.answers(body, head=events.Head(status, {"content-type": "application/json"}))

    def keeps(self, kinds: str) -> Playbook:
        """A step of these kinds is stored, behind what the client brought."""
        self << events.Store
        store = self.command
        assert isinstance(store, events.Store)
        assert kinds.split() == [draft.kind for draft in store.step.drafts]
        if store.entry is not None:
            self.log.recognition.record(store.entry)
        return self >> True

    def ends(self) -> Playbook:
        """The last piece goes to the client, and the exchange is over."""
        self << events.End
        assert isinstance(self.open, events.End)
        self.body += self.open.data
        self >> None
        if isinstance(self.open, events.KeepHistory):
            self >> None
        assert self.open is None
        return self


def question(*said: str, **more: Any) -> dict[str, Any]:
    """A conversation of these words, the first of them its client's."""
    roles = ("user", "assistant")
    messages = [{"role": roles[at % 2], "content": text} for at, text in enumerate(said or ("Why?",))]
    return {"model": "thinker", "messages": messages, "stream": True, **more}


def chunk(**delta: Any) -> bytes:
    """An event of a stream."""
    finish = delta.pop("finish", None)
    choice = {"index": 0, "delta": delta, **({"finish_reason": finish} if finish else {})}
    return b"data: " + msgspec.json.encode({"id": "c1", "choices": [choice]}) + b"\n\n"


ANSWER = (
    chunk(role="assistant", reasoning_content="Hm."),
    chunk(content="42."),
    chunk(finish="stop"),
    b"data: [DONE]\n\n",
)
