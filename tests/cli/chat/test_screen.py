"""What a turn looks like in a real terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.chat.playing import Play
from tests.cli.chat.terminal import DARK, LIGHT, Rgb


def brightness(colour: Rgb) -> float:
    """As the eye sees it."""
    return 0.2126 * colour[0] + 0.7152 * colour[1] + 0.0722 * colour[2]


@pytest.mark.parametrize(
    ("background", "environment"),
    [
        (DARK, {}),
        (LIGHT, {}),
        ((0, 0, 0), {}),
        ((255, 255, 255), {}),
        (DARK, {"COLORTERM": ""}),
        (LIGHT, {"COLORTERM": ""}),
        ((0, 0, 0), {"COLORTERM": ""}),
        ((255, 255, 255), {"COLORTERM": ""}),
    ],
)
def test_thinking_is_italic_on_a_shade_that_follows_the_terminal(
    tmp_path: Path, background: Rgb, environment: dict[str, str]
) -> None:
    """REQ-THINK-007: inline, in italics, lighter than a dark background and darker than a light one, row by row."""
    with Play(tmp_path, background=background, environment=environment) as play:
        play.do("begin")
        play.think("A thought that takes more than one row of this terminal, and a second one.")
        play.do("finish", "")
        play.end()

        rows = [play.row_of("A thought"), play.row_of("second one")]
        assert rows[0] + 1 == rows[1]
        cells = [cell for row in rows for cell in play.cells(row)]
        assert all(cell.italic for cell in cells if cell.text.strip())
        shades = {cell.rgb for cell in cells}
        assert 1 == len(shades)
        lighter = brightness(shades.pop()) > brightness(background)
        assert (background in (DARK, (0, 0, 0))) == lighter
