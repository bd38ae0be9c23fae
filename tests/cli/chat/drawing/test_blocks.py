"""Where an answer is cut into blocks while it arrives."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinkback.cli.chat.drawing.blocks import Splitter

LINES = (
    "",
    "",
    "  ",
    "words",
    "  indented",
    "# Title",
    "- item",
    "  - inner",
    "12. item",
    "1) item",
    "```python",
    "```",
    "  ```",
    "~~~",
    "> quote",
    "| a | b |",
    "|---|---|",
    "---",
    "    code",
    "\ttab",
    "`",
)
texts = st.lists(st.sampled_from(LINES), max_size=12).map("\n".join)


def blocks(pieces: list[str]) -> list[str]:
    """The blocks of a text that comes in ``pieces``, the last one with them."""
    splitter = Splitter()
    closed = [block for piece in pieces for block in splitter.feed(piece)]
    assert len(splitter.open) == splitter.size
    last = splitter.end()
    return [*closed, last] if last else closed


@given(texts | st.text(), st.integers(1, 9))
def test_the_blocks_joined_are_the_text_and_do_not_depend_on_its_pieces(text: str, size: int) -> None:
    """Nothing is lost, nothing is said twice, and a block is never empty."""
    found = blocks([text[at : at + size] for at in range(0, len(text), size)])

    assert text == "".join(found)
    assert found == blocks([text])
    assert all(found)


@pytest.mark.parametrize(
    "expected",
    [
        ["One.\nStill one.\n\n", "Two.\n\n", "\nThree."],
        ["# Title\n", "Words.\n\n", "## Next\n", "\nWords"],
        ["Words:\n", "- one\n", "- two\n  more of two\n", "- three\n\n  also three\n\n", "Words"],
        ["Words:\n", "1. one\n\n", "2. two\n   - inner\n   - inner\n", "10. ten"],
        ["Words\n", "```python\nx = 1\n\n# no title\n- no item\n```\n", "Words"],
        ["- item\n\n  ```\n  a\n\n  b\n  ```\n  more\n", "- item"],
        ["- item\n", "```\ncode\n```\n", "Words"],
        ["````\n```\nstill code\n```\n````\n", "Words"],
        ["~~~\n```\n~~~\n", "Words"],
        ["| a | b |\n|---|---|\n| 1 | 2 |\n\n", "Words"],
        ["> quote\n> ```\n> code\n\n", "Words"],
        ["Title\n===\n\n", "Words\n---\n\n", "---"],
        ["In 1986.\n2. is no item\n\n", "Words"],
        ["- item\n", "# Title\n", "Words"],
        ["    code\n\n", "    code\n\n", "Words"],
        ["``` in `line` ```\nWords"],
        ["```\nnever closed\n\nstill open"],
    ],
    ids=lambda expected: expected[0].split("\n")[0],
)
def test_a_block_ends_where_nothing_later_changes_it(expected: list[str]) -> None:
    """Paragraphs, headings, items of lists, fences and tables are blocks of their own."""
    *before, last = expected
    assert [*before, last + "\n"] == blocks(["".join(expected) + "\n"])


def test_a_block_is_closed_by_the_line_that_ends_it() -> None:
    """A paragraph closes at its blank line, a fence at its last line: neither waits for what follows."""
    splitter = Splitter()
    assert [[], ["Words.\n\n"], [], ["```\nx\n```\n"], ["# Title\n"]] == [
        splitter.feed(piece) for piece in ("Words.\n", "\n", "```\nx\n``", "`\n", "# Title\n")
    ]
