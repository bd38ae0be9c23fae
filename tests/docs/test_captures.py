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


def test_the_picture_in_the_readme_is_one_of_them() -> None:
    """So that it is taken anew with the others."""
    readme = (PLACE.parent.parent / "README.md").read_text(encoding="utf-8")
    shown = re.findall(r"^!\[.+\]\(docs/captures/([\w-]+)\.svg\)$", readme, re.MULTILINE)

    assert 1 == len(shown)
    assert set(shown) <= set(SCENES)
