"""The errors thinkback raises: one narrow class per kind of failure.

Every error says what happened and what to do next. ``details`` holds facts for programs, never a key and never
an opaque carrier; ``next_actions`` holds sentences for people.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

PROGRAM = "or, in a program, "
"""How a next action begins that only a program can do: commands and servers leave it out."""
IN_A_PROGRAM = f"{PROGRAM}give"
OTHER_MODEL = f"{PROGRAM}give model= another name"
AGAIN = f"{PROGRAM}session.generate() asks again, with what is in the log"
NEXT = "`thinkback why --next` shows the next one"
WHY = f"{PROGRAM}session.why() shows what was sent and why"


class ThinkbackError(Exception):
    """Base of every error of this package."""

    kind: ClassVar[str] = "error"

    def __init__(
        self, message: str, *, details: Mapping[str, object] | None = None, next_actions: Sequence[str] = ()
    ) -> None:
        super().__init__(message)
        self.message = message
        self.details: dict[str, object] = dict(details or {})
        self.next_actions: tuple[str, ...] = tuple(next_actions)

    @property
    def actions_for_people(self) -> tuple[str, ...]:
        """The next actions, without those that only a program can do."""
        return tuple(action for action in self.next_actions if not action.startswith(PROGRAM))

    def for_people(self) -> str:
        """The text of the error for the surface of a command or a server."""
        return _with_actions(self.message, self.actions_for_people)

    def __str__(self) -> str:
        return _with_actions(self.message, self.next_actions)


def _with_actions(message: str, actions: Sequence[str]) -> str:
    return "\n  - ".join((message, *actions))


class WireError(ThinkbackError):
    """Bytes from a provider that are not what its dialect allows."""

    kind = "wire"


class ProviderError(ThinkbackError):
    """The provider answered with an error. ``details``: status, code, type, provider_message."""

    kind = "provider"


class UnknownModelError(ProviderError):
    """The provider serves no model of this name. ``details``: also endpoint, model and, in ``nearest``, known names."""


class NetworkError(ThinkbackError):
    """The provider could not be reached, or the connection broke."""

    kind = "network"


class PhaseTimeout(NetworkError):
    """A phase of the request (connect, first byte, between bytes, whole) took too long."""

    kind = "timeout"


class ReplayRefused(ThinkbackError):
    """The endpoint requires reasoning that cannot validly be sent; raised before the network."""

    kind = "replay"


class BudgetSpent(ThinkbackError):
    """The session has used up ``reasoning.budget``; raised before the network. ``details``: spent, budget."""

    kind = "budget"


class ContextRefused(ThinkbackError):
    """What is left of a conversation after annotations, checkpoints and ``context.size`` is none that the endpoint
    takes; raised before the network. ``details``: endpoint, and how many messages were left out.
    """

    kind = "context"


class UnsupportedContent(ThinkbackError):
    """The target has no place for a part of a message or tool; raised before the network."""

    kind = "unsupported"


class SettingError(ThinkbackError):
    """Unknown key or a value that is not allowed; the old value stays."""

    kind = "setting"


class RuleFileError(ThinkbackError):
    """A rule, endpoint, settings or app file is malformed. ``details``: file, key path or line."""

    kind = "rule-file"


class NotFoundError(ThinkbackError):
    """A session, commit, endpoint or file that does not exist."""

    kind = "not-found"


class ToolDefinitionError(ThinkbackError):
    """A Python function that cannot be offered as a tool."""

    kind = "tool"


class ToolFailed(ThinkbackError):
    """A tool could not do what was asked: raise it in a tool, with what the model is to be told."""

    kind = "tool-failed"


class ToolServerError(ThinkbackError):
    """A server of tools (MCP) could not be started or reached. ``details``: server."""

    kind = "tool-server"


class CompactionRefused(ThinkbackError):
    """A checkpoint that would break the conversation, lose what must survive, or make nothing smaller."""

    kind = "compaction"


class StoreError(ThinkbackError):
    """The store cannot do what was asked (locked, full, closed)."""

    kind = "store"


class IdTakenError(StoreError):
    """A new session was to have the id of another one, which may have been deleted."""

    kind = "id-taken"


class FileTakenError(StoreError):
    """A copy was to be made in the place of a file that is there. ``details``: path."""

    kind = "file-taken"


class HeadMovedError(StoreError):
    """Another writer appended to this branch first; read again and append on top."""

    kind = "head-moved"


class ErasedSinceError(StoreError):
    """Something was erased from the log since the step was made: leave that out of it, and append it again."""

    kind = "erased-since"


class BusyError(StoreError):
    """Somebody else has a turn under way on the branch. ``details``: session, branch, process, host, since."""

    kind = "busy"


class Veto(ThinkbackError):
    """A hook of the program's own refused: raise it in a ``pre_`` hook, with the reason."""

    kind = "veto"


class DetachedError(StoreError):
    """The session looks at a commit that is no branch's to go on from: make a branch there, or switch to one."""

    kind = "detached"


class CorruptLogError(StoreError):
    """Stored bytes and stored hashes disagree."""

    kind = "corrupt"


class ErasedError(ThinkbackError):
    """What was asked for cannot be told any more: commits it needs were erased. ``details``: commits."""

    kind = "erased"


class PatternTimeout(ThinkbackError):
    """A regular expression that takes too long to match what was said. ``details``: pattern, seconds."""

    kind = "pattern"


class ExportFileError(ThinkbackError):
    """A file of exported sessions that was changed, cut off, or never was one (``details``: line), or cannot be written
    (``details``: file).
    """

    kind = "export-file"


class MissingPackageError(ThinkbackError):
    """A package that only this needs is not installed. ``details``: package, extra."""

    kind = "missing-package"


def install_hint(extra: str) -> str:
    """What to do where packages of an extra are not installed: thinkback itself is installed from a checkout."""
    return f"run `pip install '.[{extra}]'` in a checkout of thinkback"


class FormatVersionError(StoreError):
    """The file was written by a newer version of the format."""

    kind = "format-version"


class CredentialError(ThinkbackError):
    """No key for an endpoint that needs one."""

    kind = "credential"


class BranchError(ThinkbackError):
    """What was asked of a branch would tear or lose something; nothing was changed."""

    kind = "branch"


class OpenTurnError(BranchError):
    """A turn is under way: calls on this branch have no results yet."""

    kind = "open-turn"


class MergeConflictError(BranchError):
    """Two branches say different things of the same commit. ``details``: the hashes."""

    kind = "conflict"
