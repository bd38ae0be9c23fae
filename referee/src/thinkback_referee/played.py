"""A script in a file: a conversation that agents can be driven through, with calls of whatever tools they offer.

Promises: a step is played to a request that offers tools, since agents ask for titles and summaries in between; a call
goes to the first tool that its pattern names, with the arguments that the tool's schema has. Nothing of the prompt gets
into a call.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatchcase

from .house import memory, think
from .jsons import as_list, as_object, as_text
from .persona import OfferedTool, View
from .script import Call, Step
from .subjects import fill_arguments

NOTES = "{notes}"
"""In a text: what the model knows of its earlier thoughts."""

_STEP = frozenset({"reasoning", "text", "calls"})
_CALL = frozenset({"tool", "arguments"})


def read_script(text: str) -> list[Step]:
    """The steps of a file: ``[{"reasoning": ..., "text": ..., "calls": [{"tool": ..., "arguments": {...}}]}]``.

    Raises ``ValueError``, which says which step is wrong.
    """
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ValueError(f"it is not JSON: {error}") from None
    if not isinstance(found, list) or not found:
        raise ValueError("it is no list of steps")
    return [_step(each, at) for at, each in enumerate(found, 1)]


def _step(given: object, at: int) -> Step:
    step = as_object(given)
    calls = [as_object(each) for each in as_list(step.get("calls"))]
    if not step or step.keys() - _STEP:
        raise ValueError(f"step {at} is no object with {', '.join(sorted(_STEP))}")
    if any(not as_text(call.get("tool")) or call.keys() - _CALL for call in calls):
        raise ValueError(f"a call of step {at} is no object with tool (a name or patterns with |) and arguments")
    made = [Call(as_text(call["tool"]), as_object(call.get("arguments"))) for call in calls]
    return Step(as_text(step.get("reasoning")), as_text(step.get("text")), made)


def fitted(step: Step, view: View, seed: int) -> Step:
    """``step`` as it is said to one request: with the tools that are offered, and the notes that came back."""
    calls: list[Call] = []
    missing: list[str] = []
    for call in step.tool_calls:
        tool = _named(call.name, view)
        if tool is None:
            missing.append(call.name)
        else:
            calls.append(replace(call, name=tool.name, arguments=_arguments(tool, as_object(call.arguments))))
    text = step.text.replace(NOTES, memory(view, seed))
    if missing:
        text += f"The script calls {', '.join(missing)}, and no such tool is offered."
    reasoning = think(view, seed, view.rounds, step.reasoning or "The script says what comes next.")
    return replace(step, reasoning=reasoning, text=text, tool_calls=calls)


def _named(patterns: str, view: View) -> OfferedTool | None:
    for pattern in patterns.split("|"):
        for tool in view.tools:
            if fnmatchcase(tool.name.lower(), pattern.lower()):
                return tool
    return None


def _arguments(tool: OfferedTool, given: Mapping[str, object]) -> dict[str, object]:
    properties = as_object(tool.parameters.get("properties"))
    known = {name: value for name, value in given.items() if not properties or name in properties}
    required = {as_text(name) for name in as_list(tool.parameters.get("required"))}
    filled = fill_arguments(tool.parameters, "") if required - known.keys() else {}
    return {**filled, **known}
