"""Where a request goes on: the history that it stands for, and the line that it is recorded on.

Promises: nothing the client said is lost or said twice; a response that was recognised stands in its place whole, with
its reasoning; system and tools are those of the request. While the log cannot be asked, a request is taken for the
first of its conversation, and that is said. Must not: decide what is sent.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from thinkback.log import agents, echo_digests
from thinkback.log.echo_digests import EchoedMessage
from thinkback.log.protocol import MAIN, About, Seen
from thinkback.log.seal import seal
from thinkback.log.twins import unmarked
from thinkback.model.blocks import NO_CALL, Origin, Text, ToolCall, ToolResult
from thinkback.model.commits import (
    Commit,
    Draft,
    Head,
    Response,
    Step,
    Tools,
)
from thinkback.model.waiting import Waiting
from thinkback.proxy import losses, recognition, system_parts
from thinkback.proxy.events import Lookups, Unavailable, Unstored
from thinkback.proxy.problems import Refused
from thinkback.proxy.recognition import OF_A_RESPONSE, KnownConversation, Request
from thinkback.proxy.request_view import Beginning, View
from thinkback.proxy.retention import Line
from thinkback.turn import orphans
from thinkback.turn.plan import History


class Resumed(NamedTuple):
    """``known`` is the whole conversation as its client sees it, ``history`` the same with what was recognised.

    ``goes_on`` says whether it was found in the log. ``missing`` are (message, why) of answers whose reasoning is not
    there, ``lost`` the responses among them that are a model's for sure; ``answers`` counts them, ``None``
    where nobody can know.
    ``degraded``: the log could not be asked. ``line`` is where it is recorded, with what the client brought.
    ``unknown``: it names a response to go on from that nothing is known of, so that it cannot be answered.
    ``earlier`` is the line that it was on so far, where it goes on from another place. ``chosen`` says how it was
    chosen among several with equal words, ``found`` what was known of it before its client brought more.
    """

    known: Request
    history: History
    goes_on: bool
    missing: Sequence[tuple[int, str]]
    lost: Sequence[str]
    answers: losses.Answers | None
    degraded: bool
    line: Line
    unknown: bool
    earlier: Sequence[Commit]
    chosen: str
    found: KnownConversation


def resume(view: View, session: str, step: str, began: int, *, rests: bool) -> Lookups[Resumed]:
    """The conversation of ``view``. ``session`` is its id if it is a new one, ``step`` that of what its client brings.

    ``began`` is microseconds UTC. ``rests``: the log is in trouble.
    """
    client = view.received.client
    echoes = any(message.speaker == "assistant" for message in view.known.said)
    left = recognition.begins_with_several(view.known)
    wants = bool(view.known.previous or echoes or left or recognition.has_names(view.known.drafts))
    known, found, degraded = view.known, _unknown(view.known), client.records and rests
    unstored: frozenset[bytes] = frozenset()
    if client.records and wants:
        unstored = yield Unstored(view.scope)  # what is stored after this, the log has
        try:
            known, found = yield from _looked_up(view)
            degraded = False
        except Unavailable:
            degraded = True
    whole = _whole(found, known)
    missing = recognition.known_to_wait(still_missing(found, known), known, unstored)
    lost = losses.lost(missing, known, view.request.drafts)
    begun = view.received.beginning or Beginning(session, f"{client.key}/{session}")
    line = _line(view, known, found, begun, Step(step, (), began))
    base = found.base
    can_know = client.records and not (wants and degraded)
    answers = losses.answers(found.history.commits, lost) if can_know else None
    # below full recording the questions of what it names are nowhere
    unknown = can_know and known.previous != "" and (base is None or client.withholds)
    if unknown:
        answers = losses.Answers(0, 1, 0)
    goes_on = base is not None
    more = (found.earlier, found.chosen, found)
    return Resumed(whole, found.history, goes_on, missing, lost, answers, degraded, line, unknown, *more)


def on_another(view: View, resumed: Resumed, other: Seen, step: str) -> Lookups[Resumed]:
    """``resumed`` on ``other``, a conversation with equal words, system and tools (``found.others``)."""
    found = yield from recognition.on_another(resumed.found, other)
    begun = Beginning(resumed.line.session, resumed.line.name)
    line = _line(view, resumed.known, found, begun, Step(step, (), resumed.line.created))
    return resumed._replace(history=found.history, line=line, chosen=found.chosen, found=found)


def _line(view: View, known: Request, found: KnownConversation, begun: Beginning, step: Step) -> Line:
    """Place the record behind its base, else as ``begun``; its history takes up what the client brings."""
    client, base = view.received.client, found.base
    at, commits = _brought(found, known, step, view.received.front, withholds=client.withholds)
    # where it was seen there is no branch any more
    branch = (base.branch or f"{MAIN}-{step.id[:8]}") if base is not None else MAIN
    place, name = begun if base is None else (base.session, f"{client.key}/{base.session}")
    about = _about(view, known) if base is None and client.recording == "full" else About()
    return Line(place, name, step.time, branch, at, client.recording, commits, about)


def _about(view: View, known: Request) -> About:
    """What the first request of a session says of it."""
    places = (agents.directory_of(draft.kind, draft.value) for draft in known.drafts)
    directory = next(filter(None, places), "")
    headers = view.received.headers
    program = agents.program_of(headers.get("user-agent", ""), headers.get("x-title", ""))
    return About(program, agents.project_of(directory), directory)


def not_found(previous: str, param: str) -> Refused:
    """The error for a response that nothing is known of. A provider is not asked: all keys share its account.

    ``param`` is the parameter that names it; clients send the whole conversation when they read this code.
    """
    code = f"{param.removesuffix('_id')}_not_found"
    message = f"Previous response with id '{previous}' not found."
    return Refused(400, code, message, details={"response": previous, "param": param})


def _looked_up(view: View) -> Lookups[tuple[Request, KnownConversation]]:
    """What the client says with what it names put in, and what is known of it."""
    known, scope = view.known, view.scope
    if recognition.has_names(known.drafts):
        drafts = yield from recognition.resolved(known.drafts, scope)
        known = recognition.request_of(drafts, known.previous, known.marks)
    client = view.received.client
    find = recognition.find_withheld if client.withholds else recognition.find
    found: KnownConversation = yield from find(known, scope)
    if client.alone and client.recording == "full" and found.base is None and not found.copies and not known.previous:
        imported = yield from recognition.find_imported(known, view.facts.end_user)
        found = imported if imported is not None else found
    return known, found


def _unknown(request: Request) -> KnownConversation:
    """Nothing is known."""
    missing = tuple(
        (at, recognition.NOTHING_RECORDED) for at, message in enumerate(request.said) if message.speaker == "assistant"
    )
    return KnownConversation(None, History(), -1, {}, missing)


def _whole(found: KnownConversation, request: Request) -> Request:
    """``request`` with what stands before it where it only named that."""
    if not request.previous or found.base is None:
        return request
    drafts = [*echo_digests.drafts_of(found.history.commits), *request.drafts]
    return recognition.request_of(drafts, request.previous, request.marks)


def _brought(
    found: KnownConversation, known: Request, step: Step, front: str, *, withholds: bool
) -> tuple[Head, list[Commit]]:
    """Where the log goes on, and what the client of dialect ``front`` brings behind it. The history that is sent takes
    up its own.
    """
    at = found.history.head
    copies, begun = found.copies, found.begun
    drafts = added(found.history.commits, known.drafts, known.said, found.through, copies, begun, front)
    commits = seal(Step(step.id, tuple(drafts), step.time), at)
    found.history.take(commits)
    if withholds:  # the log has another history: without what was said
        at = found.base.head if found.base is not None else Head()
        commits = seal(Step(step.id, tuple(_unrecorded(found, known)), step.time), at)
    return at, commits


def _unrecorded(found: KnownConversation, request: Request) -> list[Draft]:
    """What of the request the log has not: all of it behind what is recorded."""
    start = request.said[found.recorded].at[-1] + 1 if found.recorded >= 0 else 0
    return [draft for draft in request.drafts[start:] if start == 0 or draft.kind != "tools"]


def still_missing(found: KnownConversation, request: Request) -> list[tuple[int, str]]:
    """Answers whose reasoning was neither found nor sent along by the client with an origin that can be trusted.

    To be asked before the history goes on.
    """
    if not found.missing:
        return []
    genuine = {draft.response for draft in request.drafts if _is_genuine(draft)}
    told = split_off(found.history.commits, request.drafts, request.said, found.through, found.copies)
    left = [(at, why) for at, why in found.missing if at not in told]
    return [(at, why) for at, why in left if not genuine.intersection(request.said[at].responses)]


def _is_genuine(draft: Draft) -> bool:
    return isinstance(draft.value, Response) and draft.value.origin.endpoint != ""


def last_origins(history: History) -> list[Origin]:
    """Who minted the responses of ``history``, oldest first."""
    headers = [commit.value for commit in history.commits if commit.kind == "response"]
    return [value.origin for value in headers if isinstance(value, Response) and value.origin.endpoint]


def added(
    base: Sequence[Commit],
    drafts: Sequence[Draft],
    said: Sequence[EchoedMessage],
    through: int,
    restored: Mapping[int, Sequence[Draft]],
    begun: int = 0,
    front: str = "",
) -> list[Draft]:
    """What a request of dialect ``front`` adds to ``base``, in order.

    ``drafts`` are those of the whole request and ``said`` its messages; ``base`` ends with message ``through`` (-1: it
    is empty), or with ``begun`` drafts of the message behind it. ``restored`` has the drafts of stored responses for
    messages behind it.
    """
    if begun:
        start = said[through + 1].at[begun - 1] + 1
    else:
        start = said[through].at[-1] + 1 if through >= 0 else _instructions(drafts) if base else 0
    places = {at: number for number, message in enumerate(said) for at in message.at if number > through}
    result: list[Draft] = [*_tools_change(base, drafts)]
    if through >= 0 or start:
        result = [*system_parts.changes(base, drafts[:start], said[: through + 1]), *result]
    told = split_off(base, drafts, said, through, restored)
    rest: list[Draft] = []
    for at in range(start, len(drafts)):
        draft = drafts[at]
        number = places.get(at, -1)
        if draft.kind == "tools":
            continue
        if (number in restored or number in told) and draft.kind in OF_A_RESPONSE:
            if number not in told:
                told.add(number)
                rest += restored[number]
            continue
        rest.append(draft)
    rest = _answering(base, rest, {draft.response for answer in restored.values() for draft in answer}, front)
    return result + _closing(base, rest) + rest


def split_off(
    base: Sequence[Commit],
    drafts: Sequence[Draft],
    said: Sequence[EchoedMessage],
    through: int,
    restored: Mapping[int, Sequence[Draft]],
) -> set[int]:
    """The messages with nothing but calls of a known response before them: some clients make a message of each call,
    with its result behind it. As for ``added``.
    """
    found: set[int] = set()
    unknown = (at for at in range(through + 1, len(said)) if at not in restored)
    if not any(said[at].speaker == "assistant" for at in unknown):
        return found
    known = {through: _last_answer(base), **restored} if through >= 0 else restored
    for number, answer in known.items():
        calls = {call for message in echo_digests.echoed_messages(answer) for call in message.calls}
        left = calls.difference(said[number].calls)
        for at in range(number + 1, len(said) if left else 0):
            message = said[at]
            if message.speaker == "tool":
                continue
            if message.speaker == "user" or at in restored or not _has_only(message, left, drafts):
                break
            left.difference_update(message.calls)
            found.add(at)
    return found


def _last_answer(base: Sequence[Commit]) -> list[Draft]:
    at = next((at for at in reversed(range(len(base))) if base[at].kind == "response"), len(base))
    return echo_digests.drafts_of(base[at:])


def _has_only(message: EchoedMessage, calls: set[str], drafts: Sequence[Draft]) -> bool:
    """Whether a message makes these calls, each of them known, and says nothing."""
    values = [drafts[at].value for at in message.at]
    silent = not any(isinstance(value, Text) and value.text.strip() for value in values)
    made = sum(isinstance(value, ToolCall) for value in values)
    return silent and made == len(message.calls) > 0 and calls.issuperset(message.calls)


def _instructions(drafts: Sequence[Draft]) -> int:
    """How many drafts a request begins with that say how to answer: they take the place of those it goes on from."""
    return next((at for at, draft in enumerate(drafts) if draft.kind not in ("system", "tools")), len(drafts))


def _tools_change(base: Sequence[Commit], drafts: Sequence[Draft]) -> list[Draft]:
    """The tools that are offered from here on, where they are not those of ``base``, cache marks aside.

    What was offered before is offered in its first bytes, whatever mark it has today.
    """
    now = next((draft.value.tools for draft in drafts if isinstance(draft.value, Tools)), ())
    offers = [commit.value.tools for commit in base if isinstance(commit.value, Tools)]
    wanted = [*map(unmarked, now)]
    if wanted == [*map(unmarked, offers[-1] if offers else ())]:
        return []
    known = (offer for offer in offers if [*map(unmarked, offer)] == wanted)
    return [Draft("tools", Tools(next(known, now)))]


def _answering(base: Sequence[Commit], drafts: Sequence[Draft], restored: Collection[str], front: str) -> list[Draft]:
    """``drafts`` whose results name the calls that stand before them: clients make up ids of their own for the calls
    of ``base`` and of the ``restored`` responses.

    A result that names none of those answers the first of its name, else the first there is. Calls that the client
    brought itself have its own ids. A result that nothing called for is marked so.
    """
    if not any(draft.kind == "tool_result" for draft in drafts):
        return list(drafts)
    waiting = _waiting(call.call for call in orphans.open_calls(base))
    result: list[Draft] = []
    for draft in drafts:
        value = draft.value
        if draft.kind == "response":
            waiting = _waiting()
        elif isinstance(value, ToolCall):
            _wait(waiting, value, is_clients=draft.response not in restored and value.id != "")
        elif isinstance(value, ToolResult):
            call = waiting.take(("id", value.id), *_unnamed(value))
            if call is not None and call.id != value.id:
                value = msgspec.structs.replace(value, id=call.id, wire="", dialect="")
            elif call is None and not _calls(value.id, base, result):
                value = msgspec.structs.replace(value, call_field=NO_CALL, dialect=front)
            draft = draft if value is draft.value else msgspec.structs.replace(draft, value=value)
        result.append(draft)
    return result


_ANY = "any"


def _unnamed(result: ToolResult) -> Iterator[tuple[str, ...]]:
    """How a result is told what it answers but by the id that it has."""
    if result.name:
        yield ("name", result.name)
    yield ()
    if not result.id:
        if result.name:
            yield (_ANY, result.name)
        yield (_ANY,)


def _calls(id: str, base: Sequence[Commit], drafts: Sequence[Draft]) -> bool:
    """True where an earlier call has this ``id``."""
    values = itertools.chain((each.value for each in base), (each.value for each in drafts))
    return id != "" and any(isinstance(value, ToolCall) and value.id == id for value in values)


def _waiting(calls: Iterable[ToolCall] = ()) -> Waiting[ToolCall]:
    waiting = Waiting[ToolCall]()
    for call in calls:
        _wait(waiting, call)
    return waiting


def _wait(waiting: Waiting[ToolCall], call: ToolCall, *, is_clients: bool = False) -> None:
    if is_clients:
        waiting.add(call, ("id", call.id), (_ANY, call.name), (_ANY,))
    else:
        waiting.add(call, ("id", call.id), ("name", call.name), ())


def _closing(base: Sequence[Commit], rest: Sequence[Draft]) -> list[Draft]:
    """What ends a turn that the client left in the middle: results for calls that it does not answer."""
    waiting = orphans.open_calls(base) if base and any(draft.kind == "user" for draft in rest) else []
    if not waiting:
        return []
    answered = {draft.value.id for draft in rest if isinstance(draft.value, ToolResult)}
    return [orphans.interrupted(call) for call in waiting if call.call.id not in answered]
