"""The pictures of the chat are what the chat looks like."""

from __future__ import annotations

import re

import pytest

from scripts.captures import PLACE, SCENES, picture, played, text_of


@pytest.mark.parametrize("name", SCENES)
def test_a_picture_shows_what_the_chat_shows(name: str) -> None:
    """docs/captures holds the screens as they are now; ``make docs`` takes them."""
    with played(name) as terminal:
        assert (PLACE / f"{name}.txt").read_text(encoding="utf-8") == text_of(terminal)
        assert "<svg" in picture(terminal, name)
    spans = re.findall(r"<text[^>]*>([^<]*)</text>", (PLACE / f"{name}.svg").read_text(encoding="utf-8"))
    assert any("Show&#160;me" in span for span in spans)
    # some programs that show SVG leave out blanks at the ends of spans
    assert not [span for span in spans if span.strip("\n") != span.strip()]


def test_the_readme_shows_a_turn_as_it_is() -> None:
    """The turn in the README stands in a capture, line by line."""
    readme = (PLACE.parent.parent / "README.md").read_text(encoding="utf-8")
    block = re.search(r"```\n(> .*?)\n```", readme, re.DOTALL)
    assert block is not None
    captured = [line.rstrip() for line in (PLACE / "dark-80.txt").read_text(encoding="utf-8").splitlines()]
    begin = captured.index(block[1].splitlines()[0])
    assert block[1].splitlines() == captured[begin : begin + len(block[1].splitlines())]
