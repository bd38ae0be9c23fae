"""The pictures of the chat are what the chat looks like."""

from __future__ import annotations

import pytest

from scripts.captures import PLACE, SCENES, picture, played, text_of


@pytest.mark.parametrize("name", SCENES)
def test_a_picture_shows_what_the_chat_shows(name: str) -> None:
    """docs/captures holds the screens as they are now; ``make docs`` takes them."""
    with played(name) as terminal:
        assert (PLACE / f"{name}.txt").read_text(encoding="utf-8") == text_of(terminal)
        assert "<svg" in picture(terminal, name)
        assert (PLACE / f"{name}.svg").exists()
