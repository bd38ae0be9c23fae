"""What the server needs of a provider, and what the house model needs of a conversation.

A persona plays a provider: it recognises its paths, checks credentials, judges requests against what it minted, and
renders what a scripted model says into the provider's own bytes. The server does the rest: sockets, scripts, faults,
the list of what arrived.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from .jsons import JsonObject, as_object, as_text
from .prompts import Prompts
from .script import Step
from .transport import Incoming
from .verdict import Verdict


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A function the model may call; ``parameters`` is its JSON schema."""

    name: str
    description: str = ""
    parameters: Mapping[str, object] = field(default_factory=dict)


def offered(function: object, schema: str = "parameters") -> OfferedTool:
    """A tool as most formats declare it; ``schema`` is the member with its JSON schema."""
    given = as_object(function)
    return OfferedTool(as_text(given.get("name")), as_text(given.get("description")), as_object(given.get(schema)))


@dataclass(frozen=True, slots=True)
class View:
    """A conversation as the house model sees it, whatever its wire format.

    ``asked``: the text of the last user message; ``opened``: that of the one that opened the turn, where words beside
    results open none (empty: ``asked``). ``turn`` counts user turns from 1; ``steps`` the responses of the turn under
    way and ``rounds`` those among them that called tools. ``choice`` names the tool that must be called, or is "none"
    where none may be. ``results``: (tool name, text) of the turn under way. ``notes``: the reasoning texts that came
    back and that the provider would show the model, oldest first; opaque ones are looked up in what was minted.
    ``readable``: there is a place where such reasoning could have been; ``began``: also in the turn under way.
    """

    asked: str
    turn: int = 1
    steps: int = 0
    rounds: int = 0
    tools: tuple[OfferedTool, ...] = ()
    choice: str = ""
    thinks: bool = True
    results: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    readable: bool = False
    began: bool = False
    opened: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that was understood: where it came in, its body, the model it names, and whether it wants a stream."""

    host: str
    path: str
    headers: Mapping[str, str]
    body: JsonObject
    model: str
    stream: bool


@dataclass(frozen=True, slots=True)
class Rendered:
    """A response in the provider's own bytes.

    ``whole`` is the body of a request that is not streamed. ``events`` are the pieces of a stream, framing included,
    each one event; ``end`` is what a stream ends with besides (``data: [DONE]``), maybe nothing. ``malformed`` is an
    event whose JSON is broken off; empty where cutting the text of an event makes one (that is: not in binary framing).
    """

    whole: bytes
    events: Sequence[bytes]
    end: bytes = b""
    content_type: str = "text/event-stream; charset=utf-8"
    whole_type: str = "application/json"
    malformed: bytes = b""


R = TypeVar("R")
L = TypeVar("L")


@dataclass(frozen=True)
class Provider(Generic[R, L]):
    """A family of providers, declared: its names, and what it does with a request at each stage.

    ``R`` is a request as its judge sees it, ``L`` the ledger of what it minted. Several providers may answer to one
    host name, where it speaks several formats: the first whose ``read`` knows the path has the request.
    """

    hosts: Mapping[str, str]
    """The names it answers to (the first segment of the path), each with what follows it in the base URL that a client
    of the provider is configured with ("", "/v1")."""
    models: Callable[[str], Sequence[str]]
    """The models that a host serves."""
    ledger: Callable[[], L]
    """An empty ledger."""
    read: Callable[[str, str, Incoming, L], Asked | Verdict | None]
    """The request behind host and path (begins with "/"; the host's segment and the query are taken off).

    ``None``: no such path. A verdict where no model is asked: credentials or the body's syntax are at fault, or the
    path is answered at once (the list of models, a stored response).
    """
    request: Callable[[Asked, L], R | Verdict]
    """The request as the judge sees it, or the refusal of a model without a row."""
    judge: Callable[[R, L], Verdict]
    """The provider's verdict, in its own error shape; reads the ledger and changes nothing."""
    view: Callable[[R, L], View]
    """The conversation for the house model."""
    render: Callable[[R, L, Step, str, Prompts], Rendered]
    """What the model said, as the provider would write it; mints what must come back and notes it in the ledger.

    The text is a hex string that follows from seed, host, request and step: ids and opaque values come from it.
    """
    reject: Callable[[R], Verdict]
    """The refusal of a carrier that is not valid, for a request whose carriers are."""
    broken: Callable[[str, str], bytes]
    """One event that reports an error (message, code) in the middle of a stream."""
    own: tuple[str, ...] = ()
    """The texts of refusals that are the referee's own, with names in braces for what differs."""


class Persona(Generic[R, L]):
    """A provider at work, with its ledger. All methods are called under the server's lock, so it needs none."""

    def __init__(self, provider: Provider[R, L]) -> None:
        self.provider = provider
        self.reset()

    def reset(self) -> None:
        """Forget everything minted, and the prompts."""
        self.ledger = self.provider.ledger()
        self._prompts = Prompts()

    def read(self, host: str, path: str, incoming: Incoming) -> Asked | Verdict | None:
        """The request behind a path; see ``Provider.read``."""
        return self.provider.read(host, path, incoming, self.ledger)

    def judge(self, asked: Asked) -> Verdict:
        """The verdict on a request."""
        request = self.provider.request(asked, self.ledger)
        return request if isinstance(request, Verdict) else self.provider.judge(request, self.ledger)

    def view(self, asked: Asked) -> View:
        """An accepted request for the house model."""
        return self.provider.view(self._accepted(asked), self.ledger)

    def render(self, asked: Asked, step: Step, digest: str) -> Rendered:
        """The answer to an accepted request."""
        return self.provider.render(self._accepted(asked), self.ledger, step, digest, self._prompts)

    def reject(self, asked: Asked) -> Verdict:
        """The refusal of a carrier in an accepted request."""
        return self.provider.reject(self._accepted(asked))

    def _accepted(self, asked: Asked) -> R:
        request = self.provider.request(asked, self.ledger)
        if isinstance(request, Verdict):
            raise ValueError(f"the request was refused: {request.reason}")
        return request


AnyPersona = Persona[Any, Any]
