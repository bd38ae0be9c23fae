"""What is kept of a conversation whose key does not let everything be recorded.

Promises: what may not be kept is never stored, not even for a moment: a tombstone stands in its place from the start,
and the chain of hashes is that of what was said. What reasoning must go back is kept apart, sealed and for a while, for
the same tenant and scope alone. Pure. Must not: decide who may record what.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from thinkback.gateway.grant import Recording
from thinkback.log.erasing import skeleton, tombstone
from thinkback.model import canonical
from thinkback.model.commits import Commit, Draft, Payload, Request, Tool, Tools, decode_payload

WHY = "not recorded"


class _Kept(msgspec.Struct, frozen=True, omit_defaults=True):
    """A draft of a response as it is sealed."""

    kind: str
    value: msgspec.Raw
    index: int = -1


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(tuple[_Kept, ...])


def kept(commits: Sequence[Commit], mode: Recording) -> list[Commit]:
    """``commits`` as they may be stored; ``off`` is for the caller, who stores nothing."""
    if mode == "full":
        return list(commits)
    return [commit if mode == "reasoning" and commit.kind == "reasoning" else _without(commit) for commit in commits]


def _without(commit: Commit) -> Commit:
    """``commit`` with a tombstone in place of what it says; one that says nothing stays."""
    rest = _rest(commit.value)
    if rest == commit.value:
        return commit
    stone = tombstone(WHY, commit.time, rest)
    return msgspec.structs.replace(commit, value=stone, payload=canonical.encode(stone))


def _rest(value: Payload) -> Payload | None:
    if isinstance(value, Tools):
        return Tools(tuple(Tool(tool.name) for tool in value.tools))
    if isinstance(value, Request):  # whom it was for stays: what is kept for them must be found to be erased
        return msgspec.structs.replace(value, params="{}")
    return skeleton(value)


def pack(drafts: Sequence[Draft]) -> bytes:
    """The drafts of one response (its request's record too), to be sealed."""
    return _ENCODER.encode(
        [_Kept(draft.kind, msgspec.Raw(canonical.encode(draft.value)), draft.index) for draft in drafts]
    )


def unpack(data: bytes, response: str) -> list[Draft]:
    """What ``pack`` packed, of the response of that id; nothing where it is something else."""
    try:
        found = _DECODER.decode(data)
        return [Draft(one.kind, decode_payload(bytes(one.value)), response, one.index) for one in found]  # type: ignore[arg-type]
    except msgspec.DecodeError:
        return []
