"""ATIF, the Agent Trajectory Interchange Format of Harbor: a JSON object of steps; of versions 1.0 to 1.7."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from thinkback.formats.history import Answer, Format, History, Line, Notes, Read, Source, aside, key_of
from thinkback.formats.parts import (
    call,
    content_drafts,
    counts,
    documents,
    items_of,
    microseconds,
    result,
    text_of,
    thought,
)
from thinkback.model import canonical
from thinkback.model.blocks import Text
from thinkback.model.commits import Draft
from thinkback.wire.values import members_of, plain

NAME = "atif"
_USAGE = {"input": "prompt_tokens", "output": "completion_tokens", "cached": "cached_tokens"}


def read(source: Source) -> Read:
    """The trajectories of a file, with those of their sub-agents."""
    notes = Notes()
    found = [each for value in documents(source.lines, notes) for each in _histories(value, "", notes)]
    return Read(tuple(each for each in found if each.entries), notes.left())


def _histories(value: dict[str, Any], parent: str, notes: Notes, depth: int = 0) -> Iterator[History]:
    steps = [members_of(step) for step in items_of(value.get("steps"))]
    names = [name for key in ("session_id", "trajectory_id") if (name := plain(value.get(key)))]
    first = canonical.source(steps[0]) if steps else ""
    id = "/".join(names)
    id = id if id not in ("", parent) else key_of(NAME, parent, first)
    agent = members_of(value.get("agent"))
    line, cost = Line(), 0.0
    for at, step in enumerate(steps, 1):
        _take(line, id, step, str(at), plain(agent.get("model_name")), notes)
        spent = members_of(step.get("metrics")).get("cost_usd")
        cost += spent if isinstance(spent, int | float) and 0 <= spent < 1e9 else 0
    created = next((time for step in steps if (time := microseconds(step.get("timestamp")))), 0)
    purpose = plain(agent.get("name")) if parent else ""
    cents = round(cost * 1_000_000) or None
    yield History(id, tuple(line.entries), line.tip, "", "", created, parent, purpose, cents)
    inner = [members_of(each) for each in items_of(value.get("subagent_trajectories"))]
    for each in inner if depth < 20 else ():
        yield from _histories(each, id, notes, depth + 1)


def _take(line: Line, session: str, step: dict[str, Any], id: str, model: str, notes: Notes) -> None:
    time, message = microseconds(step.get("timestamp")), step.get("message")
    match plain(step.get("source")):
        case "user":
            line.put(id, time, content_drafts(message, NAME))
        case "agent":
            answer = _answer(step, plain(step.get("model_name")) or model)
            line.put(id, time, answer.drafts(NAME, session, id))
        case "system":
            line.put(id, time, [aside(f"{NAME} system", text_of(message))])
        case source:
            notes.add(f"step of {source or 'nobody'}")
    results = items_of(members_of(step.get("observation")).get("results"))
    line.put(f"{id} results", time, [_result(members_of(each)) for each in results])


def _answer(step: dict[str, Any], model: str) -> Answer:
    text, reasoning = text_of(step.get("message")), text_of(step.get("reasoning_content"))
    calls = [members_of(each) for each in items_of(step.get("tool_calls"))]
    return Answer(
        [
            *([thought(reasoning, "reasoning_content")] if reasoning else []),
            *([Text(text)] if text else []),
            *(call(each.get("tool_call_id"), each.get("function_name"), each.get("arguments")) for each in calls),
        ],
        model,
        usage=counts(step.get("metrics"), **_USAGE),
    )


def _result(fields: dict[str, Any]) -> Draft:
    """The result of a call; without one it is what the agent saw."""
    id = plain(fields.get("source_call_id"))
    return (
        result(id, fields.get("content"))
        if id
        else aside(f"{NAME} observation", text_of(fields.get("content")), fields)
    )


def _is_own(head: bytes) -> bool:
    return b'"schema_version"' in head and b'"ATIF-v' in head


FORMAT = Format(NAME, read, _is_own, endings=(".json", ".jsonl"), has_ids=False)
