"""What the turn asks of the world (commands) and what the world tells it (events).

Commands carry ids and several may be open; each event names the id it answers. ``now`` is the caller's clock in
microseconds since 1970 UTC.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from thinkback.model.blocks import ToolCall
from thinkback.model.commits import Commit, Compaction, Draft, Step, TurnState
from thinkback.model.deltas import Delta
from thinkback.turn.permissions import PermissionAnswer, PermissionRequest, Verdict
from thinkback.turn.plan import Plan
from thinkback.wire.result import ReadResult


class BuildRequest(msgspec.Struct, frozen=True):
    """Build the next request from the settings as they are now; answer with ``Built`` or ``Failed``.

    ``plain``: the provider refused the last one, in these words, and it asked for more than its client did.
    """

    id: str
    plain: str = ""


class Review(msgspec.Struct, frozen=True):
    """Let the program's hooks see a request before it is sent, or a checkpoint before it is stored.

    Answer with ``Reviewed``, or with ``Failed``, which ends the turn.
    """

    id: str
    subject: Plan | Compaction


class Permit(msgspec.Struct, frozen=True):
    """Decide whether ``call`` may run, from the settings as they are now; answer with ``Permitted``.

    Answer with ``Failed`` where the permissions cannot be read: the call is denied then.
    """

    id: str
    call: ToolCall


class NextPlace(msgspec.Struct, frozen=True):
    """The place of the last request did not answer, for ``reason``: choose the next one. It must come to an end.

    Answer with ``PlaceChosen`` or ``Failed``.
    """

    id: str
    reason: str


class Send(msgspec.Struct, frozen=True):
    """Send ``plan``; answer with ``Head``, ``Bytes`` and ``Closed``, or ``NetError``."""

    id: str
    plan: Plan


class Cancel(msgspec.Struct, frozen=True):
    """Give up the request ``id``; no further events of it are wanted."""

    id: str


class Append(msgspec.Struct, frozen=True):
    """Store ``step``; answer with ``Appended``."""

    id: str
    step: Step


class RunTool(msgspec.Struct, frozen=True):
    """Run ``call``; answer with ``ToolDone``. With a ``refusal`` it is not run: that is the result, an error."""

    id: str
    call: ToolCall
    refusal: str = ""


class AskPerson(msgspec.Struct, frozen=True):
    """Ask a person whether a call may run; answer with ``Answered``."""

    id: str
    request: PermissionRequest


class Timer(msgspec.Struct, frozen=True):
    """Answer with ``Fired`` after ``seconds``."""

    id: str
    seconds: float


class Emit(msgspec.Struct, frozen=True):
    """Show ``delta``; nothing answers."""

    delta: Delta


class Outcome(msgspec.Struct, frozen=True):
    """How the turn ended. ``state`` is ``None`` where calls wait for results that the caller must give.

    ``responses`` are those of this turn with their commits; ``error`` is what the caller is told (raised), ``reason``
    why it came to this state where that is no error.
    """

    state: TurnState | None
    responses: tuple[tuple[ReadResult, tuple[Commit, ...]], ...]
    plan: Plan | None
    error: Exception | None = None
    reason: str = ""


class Done(msgspec.Struct, frozen=True):
    """The turn is over."""

    outcome: Outcome


Question: TypeAlias = BuildRequest | Review | Permit | NextPlace
"""What the turn asks of its host: each has one answer, or ``Failed``."""

Command: TypeAlias = Question | Send | Cancel | Append | RunTool | AskPerson | Timer | Emit | Done


Phase: TypeAlias = Literal["network", "connect", "first_byte", "idle", "total"]


class Began(msgspec.Struct, frozen=True):
    """Start."""

    now: int


class Built(msgspec.Struct, frozen=True):
    """The next request."""

    id: str
    plan: Plan
    now: int


class Reviewed(msgspec.Struct, frozen=True):
    """The hooks have seen it. ``refusal`` is why a checkpoint must not be made; empty: it may."""

    id: str
    refusal: str
    now: int


class Permitted(msgspec.Struct, frozen=True):
    """What settings and rules decide about a call."""

    id: str
    verdict: Verdict
    now: int


class PlaceChosen(msgspec.Struct, frozen=True):
    """Requests go to ``place`` from now on; empty: there is no other one."""

    id: str
    place: str
    now: int


class Failed(msgspec.Struct, frozen=True):
    """A question could not be answered: reading files, planning or a hook raised ``error``."""

    id: str
    error: Exception
    now: int


class Head(msgspec.Struct, frozen=True):
    """The response's status and headers (names in lower case) arrived."""

    id: str
    status: int
    headers: dict[str, str]
    now: int


class Bytes(msgspec.Struct, frozen=True):
    """A piece of the response body."""

    id: str
    data: bytes
    now: int


class Closed(msgspec.Struct, frozen=True):
    """The response body ended as the transport expects it."""

    id: str
    now: int


class NetError(msgspec.Struct, frozen=True):
    """The request failed below HTTP. ``phase``: connect, first_byte, idle or total for time-outs, else network.

    ``permanent``: it would fail again (a certificate that is not trusted, a malformed URL or header).
    """

    id: str
    message: str
    phase: Phase
    now: int
    permanent: bool = False


class Appended(msgspec.Struct, frozen=True):
    """``commits`` of the step are stored. ``between``: what another writer had appended before them.

    ``opened`` is the branch they opened, because another writer went on from where they were made.
    """

    id: str
    commits: tuple[Commit, ...]
    now: int
    between: tuple[Commit, ...] = ()
    opened: str = ""


class ToolDone(msgspec.Struct, frozen=True):
    """A tool gave ``content``, or failed with it. ``notes`` are stored behind the result."""

    id: str
    content: str
    is_error: bool
    now: int
    notes: tuple[Draft, ...] = ()


class Answered(msgspec.Struct, frozen=True):
    """What a person says to ``AskPerson``."""

    id: str
    answer: PermissionAnswer
    now: int


class Fired(msgspec.Struct, frozen=True):
    """A timer ran out."""

    id: str
    now: int


class Interrupt(msgspec.Struct, frozen=True):
    """The user or the caller wants the turn to end now.

    Commands given before that were not begun are void, save ``Append``: those are still owed.
    """

    now: int


Answer: TypeAlias = Built | Reviewed | Permitted | PlaceChosen | Failed

Event: TypeAlias = (
    Began | Answer | Head | Bytes | Closed | NetError | Appended | ToolDone | Answered | Fired | Interrupt
)
