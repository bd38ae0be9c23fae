"""Which reasoning led to what."""

from __future__ import annotations

import pytest

from tests.log.build import Line
from thinkback.errors import NotFoundError
from thinkback.log.blame import why
from thinkback.model.blocks import Text, ThinkingBlock, ToolCall


def tale() -> Line:
    line = Line()
    line.turn("before", "b")
    line.user("what")
    line.user("and where?")
    response = line.respond(ThinkingBlock("first"), ToolCall("look", "look", "{}"), ThinkingBlock("after the call"))
    line.edit(line.of("first"), "first!")
    line.edit(line.of("what"), "what!")
    line.result("look", "seen", response)
    line.respond(ThinkingBlock("then"), Text("this"), ends="completed")
    return line


def test_a_call() -> None:
    """The reasoning of its response before it; not what came after."""
    line = tale()
    found = why(line.commits, line.of("look({})").hash)
    assert ((line.of("first"),), (), None) == (found.reasoning, found.earlier, found.call)
    assert (line.of("what"), line.of("and where?")) == found.question


def test_an_answer() -> None:
    """And the reasoning of earlier responses of the same turn."""
    line = tale()
    found = why(line.commits, line.of("this").hash)
    assert ((line.of("then"),), (line.of("first"), line.of("after the call"))) == (found.reasoning, found.earlier)
    assert () == why(line.commits, line.of("b").hash).earlier


def test_a_result() -> None:
    """What led to its call, whether or not it names the response."""
    line = tale()
    line.user("again")
    line.respond(ThinkingBlock("again"), ToolCall("look", "look", "{}"))
    late = line.result("look", "seen again")
    for result, thought in ((line.of("seen"), "first"), (late, "again")):
        found = why(line.commits, result.hash)
        assert (result, "tool_call") == (found.commit, found.call.kind if found.call else "")
        assert [thought] == [getattr(commit.value, "thought", "") for commit in found.reasoning]


def test_turns_without_an_end() -> None:
    """Begin with the user message behind the last response."""
    line = Line()
    line.respond(ThinkingBlock("old"), Text("old answer"))
    line.user("new")
    line.respond(ThinkingBlock("t"), Text("a"))
    assert () == why(line.commits, line.of("a").hash).earlier


def test_what_nothing_led_to() -> None:
    """A message, a header, a result of nobody's call, and what is not there."""
    line = tale()
    line.result("nobody's", "?")
    for hash in (line.of("what").hash, line.commits[2].hash, line.commits[-1].hash):
        with pytest.raises(NotFoundError, match="is not part of a response"):
            why(line.commits, hash)
    with pytest.raises(NotFoundError, match="is not in this history"):
        why(line.commits, "0" * 64)
