"""Pieces of a stream: shown live, never stored. Each is tagged with the block index inside its response."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec


class TextDelta(msgspec.Struct, frozen=True, gc=False, tag="text_delta"):
    """Visible text as it arrives."""

    text: str
    index: int
    response: str = ""


class ReasoningDelta(msgspec.Struct, frozen=True, gc=False, tag="reasoning_delta"):
    """Reasoning as it arrives."""

    text: str
    index: int
    response: str = ""


class ToolCallDelta(msgspec.Struct, frozen=True, gc=False, tag="tool_call_delta"):
    """A piece of a tool call: id and name come once, ``arguments`` in fragments."""

    index: int
    id: str = ""
    name: str = ""
    arguments: str = ""
    response: str = ""


class Reclassified(msgspec.Struct, frozen=True, gc=False, tag="reclassified"):
    """Text already shown under ``index`` was reasoning: a closing tag came without an opening one."""

    text: str
    index: int
    response: str = ""


class Status(msgspec.Struct, frozen=True, tag="status"):
    """What the turn is doing; ``detail`` is the model, the reason, the tool, or the branch that was opened.

    ``asking``: a person is asked whether the tool may run; ``continuing``: why a turn is continued; ``failing_over``:
    where the request goes instead, and why; ``filling``: the context is filling up; ``compacting``: a checkpoint is
    made, or why none is; ``dropping_thoughts``: which thoughts it costs; ``budget``: how much of ``reasoning.budget``
    is spent. ``call`` is the id of the call of a tool that is asked about, started or finished, ``failed`` whether it
    did, ``result`` what it gave.
    """

    state: Literal[
        "sending",
        "retrying",
        "failing_over",
        "repairing",
        "asking",
        "continuing",
        "tool_started",
        "tool_finished",
        "branched",
        "filling",
        "compacting",
        "dropping_thoughts",
        "budget",
    ]
    detail: str = ""
    response: str = ""
    call: str = ""
    failed: bool = False
    result: str = ""


Delta: TypeAlias = TextDelta | ReasoningDelta | ToolCallDelta | Reclassified | Status
