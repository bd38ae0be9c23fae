"""The pieces of histories, whatever type they are of."""

from __future__ import annotations

from typing import Any

import pytest

from thinkback.formats import parts
from thinkback.formats.history import Left, Notes, placed
from thinkback.model import canonical
from thinkback.model.blocks import Media, Text, ThinkingBlock, ToolCall, ToolResult
from thinkback.model.commits import Draft, Usage

ODD: tuple[object, ...] = ("", "soon", "0001-01-01", None, True, -5, 1e300, float("nan"), 2**70, [])


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2026-11-22T02:11:57.741Z", 1795313517741000),
        ("2026-11-22T02:11:57", 1795313517000000),
        (1795313517, 1795313517000000),
        (1795313517.5, 1795313517500000),
        (1795313517741, 1795313517741000),
        (1795313517741000, 1795313517741000),
        *((odd, 0) for odd in ODD),
    ],
)
def test_times(value: object, expected: int) -> None:
    """Text or a number of any unit; what is none is 0."""
    assert expected == parts.microseconds(value)


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ("a", Text("a")),
        ({"text": "a"}, Text("a")),
        ({"source": {"media_type": "image/png", "data": "eA=="}}, Media("image/png", "eA==")),
        ({"inlineData": {"mimeType": "image/png", "data": "eA=="}}, Media("image/png", "eA==")),
        ({"data": "eA==", "mimeType": "image/png"}, Media("image/png", "eA==")),
        ({"image_url": {"url": "https://a.example/b"}}, Media("image/*", url="https://a.example/b")),
        ({"image_url": "data:image/gif;base64,eA=="}, Media("image/gif", "eA==")),
        ({"image_url": "data:;base64,eA=="}, Media("image/*", "eA==")),
        ({"type": "odd"}, None),
        (7, None),
    ],
)
def test_parts_of_messages(part: object, expected: Any) -> None:
    """Text and media as each dialect writes them, and nothing else."""
    assert expected == parts.part_of(part)


@pytest.mark.parametrize(
    ("content", "expected"),
    [("a", "a"), (None, ""), ([{"text": "a"}, {"text": "b"}], "ab"), ([{"a": 1}], '[{"a":1}]'), ({"a": 1}, '{"a":1}')],
)
def test_results(content: object, expected: str) -> None:
    """Texts are joined; what has other parts is JSON."""
    assert ToolResult("1", expected, "ls") == parts.result("1", content, "ls").value


def test_calls_counts_and_texts() -> None:
    """Arguments become text, what is no count is none, parts are lines."""
    assert ToolCall("1", "ls", '{"a":1}') == parts.call("1", "ls", {"a": 1})
    assert ToolCall("", "", "{}") == parts.call(None, 5, None)
    assert ToolCall("1", "ls", "-l") == parts.call("1", "ls", "-l")
    assert ThinkingBlock("", source_field="thinking", signature="s", kind="none") == parts.thought(7, "thinking", "s")
    assert Usage(input=1, wire='{"a":1,"b":-1}', invalid=("output",)) == parts.counts(
        {"a": 1, "b": -1}, input="a", output="b"
    )
    assert parts.counts({"a": "5"}, input="a") is None
    assert "a\nb\nc" == parts.text_of(["a", {"text": ["b", {"text": "c"}]}, 7])
    assert "" == parts.text_of(None)


def test_usage_names_the_program_where_it_counts() -> None:
    """A line that repeats another one's beginning does not count it again."""
    draft = Draft("provider_usage", Usage(10, 5), "r")
    assert Usage(10, 5, program="codex") == placed(draft, "codex").value
    assert draft == placed(draft, "codex", counts=False)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (b'{"type": "user", "message": "caf\xe9"}', "caf\ufffd"),
        (b'{"type": "user", "score": NaN, "message": "a", "more": [-Infinity, 1e999, 1.5]}', "a"),
    ],
)
def test_a_line_that_is_not_quite_json_is_read(line: bytes, text: str) -> None:
    """With bytes that are no text, as other encodings have them, or numbers that are none; and that is said."""
    notes = Notes()
    (found,) = parts.records([line + b"\n", b'{"deep": NaN, "in": ' + b"[" * 70 + b"]" * 70 + b"}\n"], notes)
    assert (1, text) == (found[0], found[1]["message"])
    assert "Infinity" not in str(canonical.source(found[1]))
    assert (Left("a line that is not quite JSON", 1, 1), Left("a damaged line", 1, 2)) == notes.left()
    (same,) = parts.documents([b"[" + line + b"]"], Notes())
    assert text == same["message"]


def test_what_is_no_json_at_all_is_nothing() -> None:
    """Whatever it begins with."""
    assert [None, None, None] == [parts.nearly(data) for data in (b"\xff", "{NaN", b"[" * 100_000)]
