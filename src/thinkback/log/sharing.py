"""What a log keeps back when it is shared: reasoning, carriers, and whose account paid.

Promises: what was said stays word for word; everything opaque, and every verbatim object that may hold something
opaque, goes unless it is asked for. What is left stands in a tombstone, so that the chain of hashes still verifies.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar, assert_never

import msgspec

from thinkback.log.erasing import END_USER, end_users, tombstone
from thinkback.model import canonical
from thinkback.model.blocks import Block, Media, Origin, Text, ThinkingBlock, ToolCall, ToolResult, Unknown
from thinkback.model.commits import (
    LEFT_OUT,
    Annotation,
    BranchSummary,
    Commit,
    Compaction,
    Content,
    Erased,
    Failure,
    Merge,
    Message,
    Payload,
    PermissionDecision,
    Repair,
    Request,
    Response,
    Tools,
    TurnEnded,
    Usage,
    surviving,
)

B = TypeVar("B", bound=Block)
_BLOTTED = "***"
# Fields of a request's target that say who asked, or where, which may be named after who asked.
_PRIVATE = frozenset({"account", "account_known", "base_url", END_USER})


class Sharing(msgspec.Struct, frozen=True):
    """What goes along beside what was said. ``complete`` is everything as it is stored: for oneself.

    Verbatim objects of the provider go along where both reasoning and carriers do.
    """

    reasoning: bool = False
    carriers: bool = False
    complete: bool = False

    @property
    def left_out(self) -> tuple[str, ...]:
        """What does not go along, in words."""
        if self.complete:
            return ()
        said = {"reasoning": self.reasoning, "carriers": self.carriers, "accounts": False}
        return tuple(word for word, goes in said.items() if not goes)


class Leaving:
    """Takes what must not leave out of commits, one after the other. It learns from them which accounts and end
    users there are: providers repeat them in their errors.
    """

    def __init__(self, sharing: Sharing, time: int) -> None:
        self._sharing = sharing
        self._time = time
        self._accounts: set[str] = set()

    def commit(self, commit: Commit) -> Commit:
        """``commit`` as it may leave: itself, or with a tombstone for a payload."""
        if self._sharing.complete:
            return commit
        whole = surviving(commit.value)
        self.learn(whole)
        left = self.payload(whole)
        if left == whole:
            return commit
        before = commit.value
        why, when = (before.reason, before.time) if isinstance(before, Erased) else (LEFT_OUT, self._time)
        stone = tombstone(why, when, None if _is_empty(left) else left)
        return msgspec.structs.replace(commit, value=stone, payload=canonical.encode(stone))

    def learn(self, value: Payload) -> None:
        """Hear which accounts and end users a payload names."""
        self._accounts.update(_accounts(value))

    def payload(self, value: Payload) -> Payload:
        """What of a payload may leave."""
        match value:
            case Text() | ThinkingBlock() | ToolCall() | ToolResult() | Media() | Unknown():
                return self._block(value)
            case Message():
                return self._message(value)
            case Response():
                return self._response(value)
            case Request():
                target = {key: said for key, said in value.target.items() if key not in _PRIVATE}
                return msgspec.structs.replace(value, target=target, params="{}", basis="")
            case Repair():
                endpoint = self._endpoint(value.endpoint)
                return msgspec.structs.replace(value, refusal=self.blotted(value.refusal), endpoint=endpoint)
            case TurnEnded():
                return msgspec.structs.replace(value, reason=self.blotted(value.reason))
            case Tools() | Usage() | Annotation() | Content() | Compaction() | BranchSummary() | Merge() | Erased():
                return value
            case PermissionDecision():
                return value
            case _:
                assert_never(value)

    @property
    def _verbatim(self) -> bool:
        return self._sharing.reasoning and self._sharing.carriers

    def _block(self, block: B) -> B:
        changes: dict[str, Any] = {}
        if block.origin is not None:
            changes["origin"] = self._origin(block.origin)
        if not self._sharing.carriers:
            changes["carriers"] = ()
        if not self._verbatim:
            changes["wire"] = ""
        if isinstance(block, ThinkingBlock):
            if not self._sharing.reasoning:
                changes |= {"thought": "", "inner": ()}
            if not self._sharing.carriers:
                changes["signature"] = ""
        return msgspec.structs.replace(block, **changes)

    def _message(self, message: Message) -> Message:
        parts = tuple(self._block(part) for part in message.parts)
        said = tuple(part for part in parts if not isinstance(part, Unknown) or part.wire)
        return msgspec.structs.replace(message, parts=said, wire=message.wire if self._verbatim else "")

    def _response(self, response: Response) -> Response:
        return msgspec.structs.replace(
            response,
            origin=self._origin(response.origin),
            id=response.id if self._sharing.carriers else "",
            message=response.message if self._verbatim else "",
            envelope="",
            error=self._failure(response.error) if response.error is not None else None,
        )

    def _origin(self, origin: Origin) -> Origin:
        endpoint = self._endpoint(origin.endpoint)
        return msgspec.structs.replace(origin, endpoint=endpoint, account="", account_known=False, end_user="")

    def _endpoint(self, url: str) -> str:
        """An address goes along for those who check carriers, unless it names the account."""
        return url if self._sharing.carriers and not any(account in url for account in self._accounts) else ""

    def _failure(self, failure: Failure) -> Failure:
        message, upstream = self.blotted(failure.message), self.blotted(failure.upstream)
        return msgspec.structs.replace(failure, message=message, upstream=upstream)

    def blotted(self, text: str) -> str:
        """``text`` without the accounts and end users that were heard of."""
        # the longest first: one may be part of another
        for account in sorted(self._accounts, key=len, reverse=True):
            text = text.replace(account, _BLOTTED)
        return text


def _is_empty(value: Payload) -> bool:
    """Whether nothing is left that anybody could read or send."""
    match value:
        case Unknown(wire=wire):
            return not wire
        case ThinkingBlock(thought=thought, signature=signature, carriers=carriers):
            return not (thought or signature or carriers)
        case _:
            return False


def _accounts(value: Payload) -> Iterator[str]:
    """The accounts and end users that a payload names."""
    if isinstance(value, Response):
        origins = [value.origin]
    elif isinstance(value, Request):
        origins = []
        yield from filter(None, [value.target.get("account", ""), *end_users(value)])
    else:
        origins = [origin] if (origin := getattr(value, "origin", None)) is not None else []
    for origin in origins:
        yield from filter(None, [origin.account, origin.end_user])
