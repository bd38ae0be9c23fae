"""The history that a client's request stands for: what was recognised of it from the log, and what it adds.

Promises: nothing the client said is lost or said twice; a response that was recognised stands in its place whole, with
its reasoning; system and tools are those of the request. Pure. Must not: look anything up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from thinkback.log import visible
from thinkback.log.visible import Said
from thinkback.model import canonical
from thinkback.model.blocks import Text, ToolCall, ToolResult
from thinkback.model.commits import Annotation, Commit, Draft, Message, Priority, Tool, Tools
from thinkback.model.curation import Curation
from thinkback.model.waiting import Waiting
from thinkback.turn import orphans

OF_A_RESPONSE = frozenset({"response", "reasoning", "assistant", "tool_call", "other", "media"})


def added(
    base: Sequence[Commit],
    drafts: Sequence[Draft],
    said: Sequence[Said],
    through: int,
    restored: Mapping[int, Sequence[Draft]],
) -> list[Draft]:
    """What a request adds to ``base``, in order.

    ``drafts`` are those of the whole request and ``said`` its messages; ``base`` ends with message ``through`` (-1: it
    is empty). ``restored`` has the drafts of stored responses for messages behind it.
    """
    start = said[through].at[-1] + 1 if through >= 0 else _instructions(drafts) if base else 0
    places = {at: number for number, message in enumerate(said) for at in message.at if number > through}
    result: list[Draft] = [*_tools_change(base, drafts)]
    if through >= 0 or start:
        result = [*_system_changes(base, drafts[:start]), *result]
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
    rest = _answering(base, rest)
    return result + _closing(base, rest) + rest


def split_off(
    base: Sequence[Commit],
    drafts: Sequence[Draft],
    said: Sequence[Said],
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
        calls = {call for message in visible.said(answer) for call in message.calls}
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
    return visible.drafts_of(base[at:])


def _has_only(message: Said, calls: set[str], drafts: Sequence[Draft]) -> bool:
    """Whether a message makes these calls, each of them known, and says nothing."""
    values = [drafts[at].value for at in message.at]
    silent = not any(isinstance(value, Text) and value.text.strip() for value in values)
    made = sum(isinstance(value, ToolCall) for value in values)
    return silent and made == len(message.calls) > 0 and calls.issuperset(message.calls)


def _instructions(drafts: Sequence[Draft]) -> int:
    """How many drafts a request begins with that say how to answer: they take the place of those it goes on from."""
    return next((at for at, draft in enumerate(drafts) if draft.kind not in ("system", "tools")), len(drafts))


def _system_changes(base: Sequence[Commit], head: Sequence[Draft]) -> list[Draft]:
    """Edits that make the system messages of ``base`` those that the client sends now."""
    systems = [commit for commit in base if commit.kind == "system" and not commit.edit]
    now = [draft for draft in head if draft.kind == "system"]
    if not systems:
        return now
    curation = Curation()
    curation.take(base)
    then = [commit for commit in systems if curation.priority(commit) is not Priority.SKIP]
    result: list[Draft] = []
    for commit, draft in zip(then, now, strict=False):
        if not _says_the_same(curation.value(commit), draft.value):
            result.append(Draft("system", draft.value, edit=commit.hash))
    for commit in then[len(now) :]:
        gone = Annotation(commit.hash, Priority.SKIP, reason="the client does not send it any more")
        result.append(Draft("annotation", gone))
    return result + now[len(then) :]


def _says_the_same(one: object, other: object) -> bool:
    if not (isinstance(one, Message) and isinstance(other, Message)):
        return False
    return one.text.strip() == other.text.strip()


def _tools_change(base: Sequence[Commit], drafts: Sequence[Draft]) -> list[Draft]:
    """The tools that are offered from here on, where they are not those of ``base``, cache marks aside."""
    now = next((draft.value.tools for draft in drafts if isinstance(draft.value, Tools)), ())
    offers = (commit.value for commit in reversed(base) if commit.kind == "tools")
    then: tuple[Tool, ...] = next((value.tools for value in offers if isinstance(value, Tools)), ())
    return [] if _unmarked(now) == _unmarked(then) else [Draft("tools", Tools(now))]


def _unmarked(tools: Sequence[Tool]) -> list[Tool]:
    return [
        msgspec.structs.replace(tool, wire=_without_mark(tool.wire)) if "cache_control" in tool.wire else tool
        for tool in tools
    ]


def _without_mark(wire: str) -> str:
    value = canonical.decode(wire)
    if isinstance(value, dict):
        value.pop("cache_control", None)
    return canonical.source(value)


def _answering(base: Sequence[Commit], drafts: Sequence[Draft]) -> list[Draft]:
    """``drafts`` whose results name the calls that stand before them: clients make up ids of their own.

    A result that names none of the open calls answers the first of its name, else the first there is.
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
            _wait(waiting, value)
        elif isinstance(value, ToolResult):
            call = waiting.take(("id", value.id), ("name", value.name) if value.name else ())
            if call is not None and call.id != value.id:
                value = msgspec.structs.replace(value, id=call.id, wire="", dialect="")
                draft = msgspec.structs.replace(draft, value=value)
        result.append(draft)
    return result


def _waiting(calls: Iterable[ToolCall] = ()) -> Waiting[ToolCall]:
    waiting = Waiting[ToolCall]()
    for call in calls:
        _wait(waiting, call)
    return waiting


def _wait(waiting: Waiting[ToolCall], call: ToolCall) -> None:
    waiting.add(call, ("id", call.id), ("name", call.name), ())


def _closing(base: Sequence[Commit], rest: Sequence[Draft]) -> list[Draft]:
    """What ends a turn that the client left in the middle: results for calls that it does not answer."""
    waiting = orphans.open_calls(base) if base and any(draft.kind == "user" for draft in rest) else []
    if not waiting:
        return []
    answered = {draft.value.id for draft in rest if isinstance(draft.value, ToolResult)}
    return [orphans.interrupted(call) for call in waiting if call.call.id not in answered]
