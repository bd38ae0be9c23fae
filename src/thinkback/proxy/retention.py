"""What an exchange leaves behind: the steps of its line, by what they are found again, and what may be kept of them.

Promises: the client's messages and the response they led to are one entry; a response that came whole is found again by
what a client echoes of it; what may not be kept is never stored, not even for a moment: a tombstone stands in its place
from the start, and the chain of hashes is that of what was said. What reasoning must go back is packed apart, to be
sealed. Pure. Must not: decide who may record what, or know a database.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from thinkback.log import echo_digests, matching
from thinkback.log.erasing import skeleton, tombstone
from thinkback.log.protocol import About, AppendRequest, Sighting
from thinkback.log.seal import head_of, seal
from thinkback.model import canonical
from thinkback.model.blocks import Text, ToolCall
from thinkback.model.commits import (
    NOT_RECORDED,
    Commit,
    Draft,
    Head,
    Payload,
    Request,
    Response,
    Step,
    Tool,
    Tools,
    decode_payload,
)
from thinkback.proxy import recognition
from thinkback.proxy.recognition import OF_A_RESPONSE
from thinkback.wire.writing import call_id

Recording: TypeAlias = Literal["full", "reasoning", "metadata", "off"]
"""What of a request is kept: all, reasoning without what was said, no content at all, or nothing."""


class _Kept(msgspec.Struct, frozen=True, omit_defaults=True):
    """A draft of a response as it is sealed."""

    kind: str
    value: msgspec.Raw
    index: int = -1


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(tuple[_Kept, ...])


class Line(NamedTuple):
    """Where a conversation goes on: ``session`` on ``branch`` behind ``at``; a session that is not there is made.

    ``name``, ``created`` and ``about`` are for one that is made. ``mode`` says how much of what is said may be stored.
    ``held`` are commits behind ``at`` that are stored with the next step.
    """

    session: str
    name: str
    created: int
    branch: str
    at: Head
    mode: Recording
    held: Sequence[Commit] = ()
    about: About = About()

    def sealed(self, step: Step, sightings: Sequence[Sighting] = ()) -> tuple[list[Commit], AppendRequest]:
        """The commits of ``step`` behind what is held, with all that they say, and how both are stored."""
        commits = seal(step, head_of(self.held) if self.held else self.at)
        return commits, AppendRequest(
            session=self.session,
            name=self.name,
            created=self.created,
            step=step.id,
            commits=kept([*self.held, *commits], self.mode),
            expected=self.at,
            branch=self.branch,
            sightings=sightings,
            about=self.about,
        )

    def behind(self, commits: Sequence[Commit], branch: str) -> Line:
        """The line once ``commits`` are stored on ``branch``."""
        return self._replace(branch=branch, at=head_of(commits), held=())


def branched(entry: AppendRequest) -> AppendRequest:
    """``entry`` on a branch of its own: another one was quicker, or the client went back to an earlier place."""
    branch = f"{entry.branch}-{entry.step[:8]}"
    return msgspec.structs.replace(entry, branch=branch, via=entry.branch)


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
    stone = tombstone(NOT_RECORDED, commit.time, rest)
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


def packed(step: Step) -> tuple[str, bytes] | None:
    """The response in ``step``, by its id, to be kept apart; ``None`` where it did not come whole."""
    header = _whole_response(step)
    if header is None:
        return None
    drafts = [
        draft
        for draft in step.drafts
        if draft.response == header.response and (draft.kind in OF_A_RESPONSE or draft.kind == "request")
    ]
    return header.response, pack(drafts)


def _whole_response(step: Step) -> Draft | None:
    """The header of the response in ``step``, if it came whole."""
    header = next((draft for draft in step.drafts if draft.kind == "response"), None)
    if header is None or not isinstance(header.value, Response) or not header.value.complete:
        return None
    return header


def sightings(
    request: recognition.Request, step: Step, scope: bytes, id_prefix: str, *, goes_on: bool
) -> list[Sighting]:
    """By what the response in ``step`` is found again; one that broke off only by what stands before it.

    ``id_prefix`` stands before the id that the client is given; ``goes_on``: its dialect goes on from such an id.
    """
    header = _whole_response(step)
    if header is None:
        begun = next((draft.response for draft in step.drafts if draft.kind == "response"), "")
        return matching.cut_sightings(scope, request.said, begun, request.links) if begun else []
    assert isinstance(header.value, Response)
    answer = [draft for draft in step.drafts if draft.response == header.response and draft.kind in OF_A_RESPONSE]
    shown = f"{id_prefix}{header.response}" if goes_on else ""
    found = matching.sightings(scope, request.drafts, request.said, answer, shown, request.links, request.marks)
    handed_out = [_with_id(draft, f"{id_prefix}{header.response}") for draft in answer]
    if handed_out != answer:  # the client was given ids for calls that came without any
        more = matching.sightings(scope, request.drafts, request.said, handed_out, "", request.links, request.marks)
        known = {one.digest for one in found}
        found += [one for one in more if one.digest not in known]
    if shown:
        ids = [header.value.id, *(id for draft in answer for id in _item_ids(draft))]
        found += [
            Sighting(scope, echo_digests.of_response(id), header.response) for id in dict.fromkeys(filter(None, ids))
        ]
    return found


def _with_id(draft: Draft, shown: str) -> Draft:
    """``draft`` with the id that the client of the response ``shown`` was given for a call that came without one."""
    value = draft.value
    if not isinstance(value, ToolCall) or value.id:
        return draft
    return msgspec.structs.replace(draft, value=msgspec.structs.replace(value, id=call_id("", shown, draft.index)))


def _item_ids(draft: Draft) -> list[str]:
    """The ids by which a client may name what was said, instead of repeating it."""
    return (
        [carrier.value for carrier in draft.value.carriers if carrier.kind == "item_id"]
        if isinstance(draft.value, Text)
        else []
    )
