"""Payloads know by which id their source knows them, also after they were erased."""

from __future__ import annotations

from thinkback.model import canonical
from thinkback.model.blocks import Text, ToolCall, ToolResult
from thinkback.model.commits import Compaction, Content, Erased, Message, source_of


def test_a_payload_knows_the_id_of_its_source() -> None:
    """What was spoken has that of its entry; a call and its result have the same; a text has none."""
    assert ["k"] * 3 == [
        source_of(value)
        for value in (Message("a", source="k"), Content("t", "a", source="k"), Compaction("model", source="k"))
    ]
    call, given = source_of(ToolCall("c1", "ls", "{}")), source_of(ToolResult("c1", "x"))
    assert (24, given, "", "") == (len(call), call, source_of(Text("a")), source_of(ToolCall("", "ls", "{}")))


def test_a_tombstone_knows_it_too() -> None:
    """By itself, or by what is left of the payload."""
    left = canonical.encode(Message("[redacted]", source="k")).decode()
    assert ["k", "k", ""] == [
        source_of(each) for each in (Erased("", 1, source="k"), Erased("", 1, left), Erased("", 1))
    ]
