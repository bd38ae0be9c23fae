"""Takes a history that a program holds into a session: what of it is there already, by what is visible of it."""

from __future__ import annotations

from collections.abc import Sequence

from thinkback.errors import ThinkbackError
from thinkback.log.echo_digests import EchoedMessage, drafts_of, echoed_messages
from thinkback.model.commits import Commit, Draft, Message, TurnEnded

_BEGINS = ("user", "system", "tool_result", "response")


def new_drafts(commits: Sequence[Commit], drafts: Sequence[Draft]) -> list[Draft]:
    """What of ``drafts`` (a whole history) is not yet in ``commits``, and the end of a turn they bring to one.

    Raises ``ThinkbackError`` where the two histories differ.
    """
    stored = drafts_of(commits)
    known, theirs = echoed_messages(stored), echoed_messages(drafts)
    end = _end_of_known(stored, known, drafts, theirs)
    seen = next((place for message in theirs for place in message.at if place >= end), len(drafts))
    held = _begun(stored, known[-1].at[-1] + 1 if known else 0)
    added = [*_without(held, drafts[end:seen]), *drafts[seen:]]
    if added and _ends_turn(added):
        added.append(Draft("turn_ended", TurnEnded("completed", "adopted")))
    return added


def _end_of_known(
    stored: Sequence[Draft], known: list[EchoedMessage], drafts: Sequence[Draft], theirs: list[EchoedMessage]
) -> int:
    """How many of ``drafts`` say what is known."""
    if not known:
        return 0
    last = len(known) - 1
    for at, (ours, other) in enumerate(zip(known, theirs, strict=False)):
        if ours.value == other.value:
            continue
        end = _end_inside(stored, ours, drafts, theirs, at) if at == last else 0
        if end:
            return end
        raise _differs(len(_begun(drafts[: other.at[0]], 0)))
    if len(theirs) <= last:
        at = len(_begun(drafts, 0))
        raise _differs(at, f"the session holds {len(_begun(stored, 0))} messages, the history only {at}")
    return theirs[last].at[-1] + 1


def _end_inside(
    stored: Sequence[Draft], known: EchoedMessage, drafts: Sequence[Draft], theirs: list[EchoedMessage], at: int
) -> int:
    """Where in the message at ``at`` what is known ends: neighbours of one speaker are one, and some may be new."""
    count = len(_begun([stored[place] for place in known.at], 0))
    begins = [place for place in theirs[at].at if drafts[place].kind in _BEGINS]
    if count >= len(begins):
        return 0
    first = theirs[at - 1].at[0] if at else 0
    end = max(place for place in theirs[at].at if place < begins[count]) + 1
    there = echoed_messages(drafts[first:end])
    return end if there and there[-1].value == known.value else 0


def _begun(drafts: Sequence[Draft], start: int) -> list[tuple[str, str]]:
    """Each message that begins in ``drafts`` from ``start`` on: its kind, and what a system message says."""
    found = (draft for draft in drafts[start:] if draft.kind in _BEGINS and not draft.edit)
    return [(draft.kind, draft.value.text.strip() if isinstance(draft.value, Message) else "") for draft in found]


def _without(held: list[tuple[str, str]], drafts: Sequence[Draft]) -> list[Draft]:
    """``drafts`` without the messages at their beginning that are held; no visible ones are among them."""
    left: list[Draft] = []
    skips = False
    for draft in drafts:
        if begun := _begun([draft], 0):
            skips = held[:1] == begun
            held = held[1:] if skips else held
        if not skips:
            left.append(draft)
    return left


def _differs(at: int, why: str = "") -> ThinkbackError:
    return ThinkbackError(
        why or f"messages[{at}] differs from what the session holds",
        details={"message": at},
        next_actions=("adopt it into a new session",),
    )


def _ends_turn(drafts: Sequence[Draft]) -> bool:
    """Whether the last message is a response without calls."""
    start = max(at for at, draft in enumerate(drafts) if draft.kind in _BEGINS)
    return drafts[start].kind == "response" and not any(draft.kind == "tool_call" for draft in drafts[start:])
