"""Which messages a program sees of a session, so that a history it holds is recognised."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from thinkback.errors import ThinkbackError
from thinkback.model import canonical
from thinkback.model.blocks import Text, ToolCall, ToolResult
from thinkback.model.commits import Commit, Draft, Message, Response, TurnEnded

Visible: TypeAlias = tuple[object, ...]

_OF_A_RESPONSE = ("response", "reasoning", "assistant", "tool_call", "other", "media")


def new_drafts(commits: Sequence[Commit], drafts: Sequence[Draft]) -> list[Draft]:
    """What of ``drafts`` (a whole history) is not yet in ``commits``, and the end of a turn they bring to one.

    Raises ``ThinkbackError`` where the two histories differ.
    """
    known = visible([Draft(c.kind, c.value, c.response, c.index) for c in commits])
    groups = _by_message(drafts)
    theirs = visible(drafts)
    if theirs[: len(known)] != known:
        same = (at for at, (one, other) in enumerate(zip(theirs, known, strict=False)) if one != other)
        at = next(same, len(theirs))
        raise ThinkbackError(
            f"messages[{at}] differs from what the session holds"
            if at < len(theirs)
            else f"the session holds {len(known)} messages, the history only {len(theirs)}",
            details={"message": at},
            next_actions=("adopt it into a new session",),
        )
    added = [draft for group in groups[len(known) :] for draft in group]
    if added and _ends_turn(groups[-1]):
        added.append(Draft("turn_ended", TurnEnded("completed", "adopted")))
    return added


def visible(drafts: Sequence[Draft]) -> list[Visible]:
    """The messages as a program holds them; parallel results stand in any order, so theirs is made one."""
    seen = [_visible_of(group) for group in _by_message(drafts)]
    ordered: list[Visible] = []
    results: list[Visible] = []
    for item in seen:
        if item[0] == "tool":
            results.append(item)
            continue
        ordered += [*sorted(results, key=str), item]
        results = []
    return [*ordered, *sorted(results, key=str)]


def _by_message(drafts: Sequence[Draft]) -> list[list[Draft]]:
    """The drafts of each message. A response that did not complete is none: no program was given it to hold."""
    groups: dict[object, list[Draft]] = {}
    broken: set[str] = set()
    for at, draft in enumerate(drafts):
        if isinstance(draft.value, Response) and not draft.value.complete:
            broken.add(draft.response)
        if draft.kind in ("user", "system", "tool_result"):
            groups[at] = [draft]
        elif draft.kind in _OF_A_RESPONSE and draft.response not in broken:
            groups.setdefault(draft.response, []).append(draft)
    return list(groups.values())


def _visible_of(group: list[Draft]) -> Visible:
    values = [draft.value for draft in group]
    first = values[0]
    if isinstance(first, Message):
        return (group[0].kind, first.text.strip(), tuple(part.wire for part in first.parts if part.wire))
    if isinstance(first, ToolResult):
        return ("tool", first.id, first.content)
    text = "".join(value.text for value in values if isinstance(value, Text)).strip()
    calls = tuple((v.id, v.name, _arguments(v.arguments)) for v in values if isinstance(v, ToolCall))
    return ("assistant", text, calls)


def _ends_turn(group: list[Draft]) -> bool:
    return group[0].kind == "response" and not any(draft.kind == "tool_call" for draft in group)


def _arguments(source: str) -> str:
    """Arguments as canonical JSON where they are JSON: programs re-serialise them."""
    try:
        return canonical.encode(canonical.decode(source)).decode()
    except ValueError:
        return source
