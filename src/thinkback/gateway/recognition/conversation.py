"""The conversation that a request belongs to: found again by what the client sends back, taken up where it was left.

Promises: a look-up stays inside the tenant and the scope of the request; what is not found is named, never guessed; a
history is read from the log only where this process has it not. Must not: decide what is sent of it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import NamedTuple, Protocol, TypeVar

from thinkback.errors import WireError
from thinkback.gateway.recognition import attach
from thinkback.gateway.recognition.attach import OF_A_RESPONSE
from thinkback.gateway.recognition.histories import Histories
from thinkback.log import recognising, visible
from thinkback.log.protocol import Seen, Sighting, Store
from thinkback.log.recognising import CANDIDATES, Recognised, Search
from thinkback.log.visible import Said
from thinkback.model.blocks import Origin, Text
from thinkback.model.commits import Commit, Draft, Response, Step
from thinkback.turn.plan import History

T = TypeVar("T")
_NOTHING_RECORDED = "nothing is recorded"
NOTHING = frozenset({"unknown", _NOTHING_RECORDED})
"""The reasons for which an answer is missing that say nothing of whether there ever was one."""


class InThread(Protocol):
    """Runs a call on a thread for the store."""

    def __call__(self, work: Callable[[], T], /) -> Awaitable[T]: ...


class Request(NamedTuple):
    """A client's request as values: its drafts, the messages in them as it sees them, and their chain of digests."""

    drafts: Sequence[Draft]
    said: Sequence[Said]
    links: Sequence[bytes]
    previous: str = ""


def request_of(drafts: Sequence[Draft], previous: str = "") -> Request:
    """``drafts`` of a request; ``previous`` is the id of the response that it goes on from, where it names one."""
    said = visible.said(drafts)
    return Request(drafts, said, visible.chain(message.value for message in said), previous)


class Found(NamedTuple):
    """What is known of a conversation.

    ``history`` ends where the conversation was seen last, ``through`` is the last message of the request in it (-1:
    none). ``copies`` are the drafts of stored responses for messages behind it. ``missing`` are (message, why) of
    answers that nothing is known of. ``recorded`` is the last message that the log has, with its content or without.
    """

    base: Seen | None
    history: History
    through: int
    copies: dict[int, list[Draft]]
    missing: tuple[tuple[int, str], ...]
    recorded: int = -1


def unknown(request: Request) -> Found:
    """Nothing is known."""
    missing = tuple(
        (at, _NOTHING_RECORDED) for at, message in enumerate(request.said) if message.speaker == "assistant"
    )
    return Found(None, History(), -1, {}, missing)


async def find(
    request: Request, log: Store, tenant: str, scope: bytes, histories: Histories, in_thread: InThread
) -> Found:
    """Look ``request`` up in ``log``. Raises ``StoreError``."""
    seen = await found_in(request, log, scope, in_thread)
    lines = await _lines(seen, log, in_thread)
    seen = _on_one_line(seen, request.said, lines)
    history = await _taken_up(seen.base, log, tenant, histories, in_thread)
    copies = _copies(seen, lines)
    return Found(seen.base, history, seen.through, copies, seen.missing, seen.through)


def whole(found: Found, request: Request) -> Request:
    """``request`` with what stands before it where it only named that."""
    if not request.previous or found.base is None:
        return request
    return request_of([*visible.drafts_of(found.history.commits), *request.drafts], request.previous)


async def found_in(request: Request, log: Store, scope: bytes, in_thread: InThread) -> Recognised:
    """What the request echoes; of one that only names a response, that one."""
    if request.previous:
        wanted = [visible.of_response(request.previous)]
        found = {seen.response: seen for seen in await in_thread(partial(_looked_up, log, scope, wanted))}
        base = next(iter(found.values())) if len(found) == 1 else None
        return Recognised(base, -1, {}, ())
    search = Search(request.said, request.links)
    while wanted := search.wanted():
        search.take(await in_thread(partial(_looked_up, log, scope, wanted)))
    return search.result()


def _looked_up(log: Store, scope: bytes, wanted: Sequence[bytes]) -> list[Seen]:
    return log.recognition.lookup(scope, wanted, CANDIDATES)


async def _taken_up(base: Seen | None, log: Store, tenant: str, histories: Histories, in_thread: InThread) -> History:
    if base is None:
        return History()
    known = histories.take(tenant, base.head.hash)
    if known is not None:
        return known
    return History(await in_thread(partial(log.read_to, base.session, base.head.hash)))


_Lines = dict[tuple[str, str], list[Commit]]


async def _lines(found: Recognised, log: Store, in_thread: InThread) -> _Lines:
    """What stands in the log up to each response that was found one by one."""
    places = {(seen.session, seen.head.hash) for seen in found.restored.values()}
    return {place: await in_thread(partial(log.read_to, *place)) for place in places}


def _on_one_line(found: Recognised, said: Sequence[Said], lines: _Lines) -> Recognised:
    """``found`` on the line of its last response, where that has the request's messages and nothing else.

    A client that puts words into an answer (a filler for an empty text, say) is recognised answer by answer, and its
    conversation is one all the same: reasoning that is bound to what stands before it stays where it is.
    """
    if not found.restored:
        return found
    last = max(found.restored)
    seen = found.restored[last]
    commits = lines[seen.session, seen.head.hash]
    line = visible.said(visible.drafts_of(commits))
    goes_on = found.base is None or any(commit.hash == found.base.head.hash for commit in commits)
    if len(line) != last + 1 or not goes_on:
        return found
    for at in range(found.through + 1, last + 1):
        there, restored = line[at], found.restored.get(at)
        if there.value != said[at].value and (restored is None or restored.response not in there.responses):
            return found
    missing = tuple((at, why) for at, why in found.missing if at > last)
    return Recognised(seen, last, {}, missing)


def _copies(found: Recognised, lines: _Lines) -> dict[int, list[Draft]]:
    return {
        number: [
            Draft(commit.kind, commit.value, commit.response, commit.index)
            for commit in lines[seen.session, seen.head.hash]
            if commit.response == seen.response and commit.kind in OF_A_RESPONSE
        ]
        for number, seen in found.restored.items()
    }


def not_found(previous: str) -> WireError:
    """The error for a response that nothing is known of. A provider is not asked: all keys share its account."""
    return WireError(
        f"Previous response with id '{previous}' not found.",
        details={"response": previous},
        next_actions=("send the conversation itself",),
    )


def opening(found: Found, request: Request) -> list[Draft]:
    """What the request adds to the history that was found."""
    return attach.added(found.history.commits, request.drafts, request.said, found.through, found.copies)


def unrecorded(found: Found, request: Request) -> list[Draft]:
    """What of the request the log has not: all of it behind what is recorded."""
    start = request.said[found.recorded].at[-1] + 1 if found.recorded >= 0 else 0
    return [draft for draft in request.drafts[start:] if start == 0 or draft.kind != "tools"]


def still_missing(found: Found, request: Request) -> list[tuple[int, str]]:
    """Answers whose reasoning was neither found nor sent along by the client with an origin that can be trusted.

    To be asked before the history goes on.
    """
    if not found.missing:
        return []
    genuine = {draft.response for draft in request.drafts if _is_genuine(draft)}
    told = attach.split_off(found.history.commits, request.drafts, request.said, found.through, found.copies)
    left = [(at, why) for at, why in found.missing if at not in told]
    return [(at, why) for at, why in left if not genuine.intersection(request.said[at].responses)]


def _is_genuine(draft: Draft) -> bool:
    return isinstance(draft.value, Response) and draft.value.origin.endpoint != ""


def last_origins(history: History) -> list[Origin]:
    """Who minted the responses of ``history``, oldest first."""
    headers = [commit.value for commit in history.commits if commit.kind == "response"]
    return [value.origin for value in headers if isinstance(value, Response) and value.origin.endpoint]


def sightings(request: Request, step: Step, scope: bytes, shown_as: Callable[[str], str]) -> list[Sighting]:
    """By what the response in ``step`` is found again; nothing where it did not come whole.

    ``shown_as`` gives the id that the client was told, empty where its dialect has no use for it.
    """
    header = next((draft for draft in step.drafts if draft.kind == "response"), None)
    if header is None or not isinstance(header.value, Response) or not header.value.complete:
        return []
    answer = [draft for draft in step.drafts if draft.response == header.response and draft.kind in OF_A_RESPONSE]
    shown = shown_as(header.response)
    found = recognising.sightings(scope, request.drafts, request.said, answer, shown, request.links)
    if shown:
        ids = [header.value.id, *(id for draft in answer for id in _item_ids(draft))]
        found += [Sighting(scope, visible.of_response(id), header.response) for id in dict.fromkeys(filter(None, ids))]
    return found


def _item_ids(draft: Draft) -> list[str]:
    """The ids by which a client may name what was said, instead of repeating it."""
    return (
        [carrier.value for carrier in draft.value.carriers if carrier.kind == "item_id"]
        if isinstance(draft.value, Text)
        else []
    )
