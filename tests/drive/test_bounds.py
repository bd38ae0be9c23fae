"""How much of a tool's output the model gets."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from thinkback.drive.bounds import bounded


def test_short_output_stays() -> None:
    """To the last character."""
    assert "a\nb\n" * 10 == bounded("a\nb\n" * 10, 10)


def test_long_output_is_cut_in_its_middle_between_lines() -> None:
    """The note says how much is missing."""
    text = "".join(f"{number:03}\n" for number in range(100))
    cut = bounded(text, 20)
    assert "000\n001\n" in cut
    assert cut.endswith("098\n099\n")
    missing = int(re.findall(r"([\d,]+) characters left out, about", cut)[0])
    assert 400 - missing == sum(len(line) + 1 for line in cut.split("\n") if line.isdigit())


@given(st.text(max_size=500), st.integers(1, 50))
def test_the_bound_holds(text: str, tokens: int) -> None:
    """Save for the note; beginning and end are those of the text."""
    cut = bounded(text, tokens)
    assert len(cut) <= max(len(text), 4 * tokens) + 80
    if cut != text:
        head, _, tail = re.split(r"(\[\.\.\. .*? tokens \.\.\.\])", cut, maxsplit=1)
        assert text.startswith(head.rstrip())
        assert text.endswith(tail[1:])
