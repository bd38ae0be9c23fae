"""What the server needs of a wire format, and what the house model needs of a conversation in one.

A persona plays a provider: it recognises its paths, checks credentials, judges requests against what it minted, and
renders what a scripted model says into the provider's own bytes. The server does the rest: sockets, scripts, faults,
the list of what arrived.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from .jsons import JsonObject
from .script import Step
from .transport import Incoming
from .verdict import Verdict


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A function the model may call; ``parameters`` is its JSON schema."""

    name: str
    description: str = ""
    parameters: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class View:
    """A conversation as the house model sees it, whatever its wire format.

    ``asked``: the text of the last user message. ``turn`` counts user turns from 1; ``steps`` the responses of the turn
    under way and ``rounds`` those among them that called tools. ``choice`` names the tool that must be called, or is
    "none" where none may be. ``results``: (tool name, text) of the turn under way. ``notes``: the reasoning texts that
    came back and that the provider would show the model, oldest first; opaque ones are looked up in what was minted.
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


class Persona(Protocol):
    """One provider family; its ledger is its own.

    All methods are called under the server's lock, so a persona needs none. Several personas may answer to one host
    name, for a provider that speaks several formats: the first whose ``read`` knows the path has the request.
    """

    @property
    def hosts(self) -> Sequence[str]:
        """The names it answers to: the first segment of the path."""
        ...

    def base_path(self, host: str) -> str:
        """What follows the host name in the base URL that a client of the provider is configured with ("", "/v1")."""
        ...

    def models(self, host: str) -> Sequence[str]:
        """The models the host serves."""
        ...

    def read(self, host: str, path: str, incoming: Incoming) -> Asked | Verdict | None:
        """The request behind ``path`` (begins with "/"; the host's segment and the query are taken off).

        ``None``: no such path. A verdict where no model is asked: credentials or the body's syntax are at fault, or
        the path is answered at once (the list of models, a stored response).
        """
        ...

    def judge(self, asked: Asked) -> Verdict:
        """The provider's verdict on the request, in its own error shape; reads the ledger and changes nothing."""
        ...

    def view(self, asked: Asked) -> View:
        """The conversation for the house model."""
        ...

    def render(self, asked: Asked, step: Step, digest: str) -> Rendered:
        """What the model said, as the provider would write it; mints what must come back and notes it in the ledger.

        ``digest`` is a hex string that follows from seed, host, request and step: ids and opaque values come from it.
        """
        ...

    def reject(self, asked: Asked) -> Verdict:
        """The provider's refusal of a carrier that is not valid, for a request whose carriers are."""
        ...

    def broken(self, message: str, code: str) -> bytes:
        """One event that reports an error in the middle of a stream."""
        ...

    def reset(self) -> None:
        """Forget everything minted."""
        ...
