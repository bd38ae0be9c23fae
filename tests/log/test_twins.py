"""Marks by which conversations with equal words are told apart: what they are made of, in which order they decide."""

from __future__ import annotations

from typing import Any

import pytest

from thinkback.log.twins import Marks, context_of, digest_of, levels, unmarked
from thinkback.model.commits import Draft, Message, Tool, Tools
from thinkback.wire.anthropic.read_request import read_tool


def test_the_name_weighs_more_than_the_context_and_that_more_than_the_client() -> None:
    """Each combination once, those that are known alone."""
    found = levels(Marks(b"N", b"C", b"I"))
    assert [b"nNcCiI", b"nNcC", b"nNiI", b"nN", b"cCiI", b"cC", b"iI"] == [level.data for level in found]
    assert "of this name, with equal system and tools, of the same client" == found[0].words
    assert [b"cC"] == [level.data for level in levels(Marks(context=b"C"))]
    assert [] == levels(Marks())


def test_a_name_is_none_of_a_client() -> None:
    """An empty one is no mark; half a character is."""
    assert b"" == digest_of("name", "")
    assert 3 == len({digest_of("name", "a"), digest_of("instance", "a"), digest_of("name", "\ud800")})


LOOK = Tool("look", "Look.", "{}")
MARKED = '{"name":"look","cache_control":{"type":"ephemeral"}}'


def context(*drafts: Any) -> bytes:
    """Of texts as system messages, and of other values as they are."""
    kinds = {str: "system", Message: "user", Tools: "tools"}
    return context_of([Draft(kinds[type(d)], Message(d) if isinstance(d, str) else d) for d in drafts])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (["Be brief."], [" Be brief.\n"]),
        (["a", Tools((LOOK,))], [Tools((LOOK,)), "a"]),
        (["a", Message("Why?"), "b"], ["a", Message("Why?")]),
        ([Tools((Tool("look", wire=MARKED),))], [Tools((Tool("look", wire='{"name":"look"}'),))]),
    ],
)
def test_instructions_are_the_same(one: list[Any], other: list[Any]) -> None:
    """White space at the ends and cache marks aside; what comes later in a conversation does not count."""
    assert context(*one) == context(*other)


def test_other_instructions_are_others() -> None:
    """In words, number, order, and in each tool."""
    known: list[list[Any]] = [[], ["a"], ["b"], ["a", "b"], ["b", "a"], ["ab"]]
    known += [[Tools(tools)] for tools in ((LOOK,), (Tool("look"),), (LOOK, LOOK))]
    assert len(known) == len({context(*each) for each in known})


def test_a_definition_that_is_no_object_stays() -> None:
    """Also where it speaks of cache marks."""
    tool = Tool("look", wire='["cache_control"]')
    assert tool == unmarked(tool)


def test_a_tool_without_its_mark_is_read_as_one_that_never_had_one() -> None:
    """Whatever else its definition says stays."""
    plain = {"name": "look", "description": "Look.", "input_schema": {"type": "object"}}
    for tool in (plain, {**plain, "strict": True}, {"name": "look", "type": "bash_20250124"}):
        marked = {**tool, "cache_control": {"type": "ephemeral"}}
        assert read_tool(tool) == unmarked(read_tool(marked)) == unmarked(read_tool(tool))
