"""What an exchange wants done (commands), and what comes of it.

One command is open at a time. Each names the value that answers it; instead of it there may be ``Failed``, which is
raised where the command was given, and at any time ``Interrupt``.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec

from thinkback.log.protocol import AppendRequest
from thinkback.model.blocks import Origin
from thinkback.model.commits import Step
from thinkback.model.target import Target
from thinkback.session.endpoint_config import EndpointConfig
from thinkback.turn.credentials import Authenticator
from thinkback.turn.plan import History, Plan
from thinkback.wire.writing import Problem

T = TypeVar("T")


class LookUp(msgspec.Struct, frozen=True):
    """Which responses are known under ``digests``, at most ``most`` of each; answered by ``list[Seen]``."""

    digests: Sequence[bytes]
    scope: bytes
    most: int


class ReadLines(msgspec.Struct, frozen=True):
    """What the log has up to each of ``places`` (session, hash); answered by a ``dict`` from place to commits."""

    places: frozenset[tuple[str, str]]


class ReadHistory(msgspec.Struct, frozen=True):
    """The history of ``session`` up to the commit ``head``, to go on with; answered by ``History``."""

    session: str
    head: str


class KeepHistory(msgspec.Struct, frozen=True):
    """Keep ``history``, about ``weight`` bytes, for whoever goes on with it. Nothing need be done."""

    history: History
    weight: int


class OpenKept(msgspec.Struct, frozen=True):
    """The responses that are kept apart from a log which withholds them; answered by a ``dict`` from id to drafts."""

    responses: frozenset[str]
    scope: bytes


class FindErased(msgspec.Struct, frozen=True):
    """Those of ``responses``, ids that a client's sealed values name, that were erased; answered by a ``frozenset``."""

    responses: frozenset[str]


class FindErasure(msgspec.Struct, frozen=True):
    """Whether anything was erased from the log since the conversation was looked up in it, or since this was asked;
    answered by ``bool``.
    """


class Unstored(msgspec.Struct, frozen=True):
    """The digests in ``scope`` of responses that wait to be stored; answered by a ``frozenset``, also without a log."""

    scope: bytes


class Choose(msgspec.Struct, frozen=True):
    """The places for ``model``; ``origins`` are who minted what the history carries.

    Answered by the first ``Route``.
    """

    model: str
    origins: Sequence[Origin]
    end_user: str


class Settle(msgspec.Struct, frozen=True):
    """Which settings are in force at ``route``; answered by ``Settings``."""

    route: Route


class NextPlace(msgspec.Struct, frozen=True):
    """The current place did not answer, for ``reason``; answered by the next ``Route``, or ``None``."""

    reason: str


class Send(msgspec.Struct, frozen=True):
    """Authenticate ``plan`` and send ``body``; answered by ``Head``."""

    plan: Plan
    body: bytes


class Receive(msgspec.Struct, frozen=True):
    """Answered by the next piece of the response that was sent for, as ``bytes``; by nothing at its end."""


class Sleep(msgspec.Struct, frozen=True):
    """Go on after ``seconds``."""

    seconds: float


class Store(msgspec.Struct, frozen=True):
    """Store a step of the turn: ``entry`` in the log, where it is one, and ``kept`` (id and drafts of a response) apart
    from it, sealed in ``scope``, where it is one.

    Answered by ``True`` when both are stored, ``False`` where something is not, or waits in a spool.
    """

    step: Step
    entry: AppendRequest | None
    kept: tuple[str, bytes] | None
    scope: bytes


class Start(msgspec.Struct, frozen=True):
    """Status and headers of the response to the client."""

    status: int
    headers: Mapping[str, str]


class Write(msgspec.Struct, frozen=True):
    """A piece of it."""

    data: bytes


class End(msgspec.Struct, frozen=True):
    """The last piece."""

    data: bytes


class Judged(msgspec.Struct, frozen=True):
    """What became of the current place: it answered, or the request failed there. Nothing need be done."""

    error: Exception | None


InLog: TypeAlias = LookUp | ReadLines | ReadHistory | OpenKept | FindErased | FindErasure
"""What an exchange looks up in a log; answered by ``Unavailable`` where it is to do without."""

Question: TypeAlias = InLog | Unstored
"""What an exchange asks about the conversation."""

Command: TypeAlias = (
    Question | KeepHistory | Choose | Settle | NextPlace | Judged | Send | Receive | Sleep | Store | Start | Write | End
)

Flow: TypeAlias = Generator[Command, Any, T]
"""Gives commands, is sent the answer of each, and ends with a ``T``. What answers what is said above."""

Lookups: TypeAlias = Generator[Question, Any, T]
"""The same, of questions alone."""


class Route(msgspec.Struct, frozen=True):
    """One place that a request may go to. ``settings`` are those of the name it was found by; ``name`` is shown to
    clients.

    ``upstream`` is what the caller calls it. ``streaming`` and ``whole`` are the headers of a request for either kind
    of response, without credentials. ``passes_stored``: names of what its account keeps may be sent to it. ``payer`` is
    the key whose own credential goes there, if it is one.
    """

    upstream: str
    place: EndpointConfig
    target: Target
    authenticator: Authenticator
    settings: Mapping[str, object]
    streaming: dict[str, str]
    whole: dict[str, str]
    leaked_calls: Literal["text", "pass"] = "text"
    passes_stored: bool = False
    payer: str = ""

    @property
    def name(self) -> str:
        """``upstream/model``."""
        return f"{self.upstream}/{self.target.model}"

    @property
    def key(self) -> tuple[str, str]:
        """What is asked as one."""
        return self.upstream, self.target.model

    @property
    def breaker(self) -> tuple[str, ...]:
        """What fails or answers as one: where a client's own credential goes, each for itself."""
        return (*self.key, self.payer) if self.payer else self.key

    def __repr__(self) -> str:
        return f"<Route {self.upstream}/{self.target.model}>"


class Head(msgspec.Struct, frozen=True):
    """Status and headers (names in lower case) of a provider's response."""

    status: int
    headers: dict[str, str]


class Answered(msgspec.Struct, frozen=True):
    """The open command was performed; ``value`` is its answer."""

    value: Any = None


class Failed(msgspec.Struct, frozen=True):
    """The open command was not performed."""

    error: Exception


class Interrupt(msgspec.Struct, frozen=True):
    """The client left, or the server ends: nothing more of the response is wanted.

    ``stop`` is what a client that still reads is told; ``None`` where nobody reads any more. ``why`` is for the log.
    """

    why: str
    stop: Problem | None = None


Event: TypeAlias = Answered | Failed | Interrupt


class Unavailable(Exception):
    """The log cannot be asked at the moment, and the exchange is to do without it."""


class Interrupted(BaseException):
    """Raised in a flow where it is interrupted."""

    def __init__(self, interrupt: Interrupt) -> None:
        super().__init__(interrupt.why)
        self.interrupt = interrupt
