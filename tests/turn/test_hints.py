"""When reasoning is excessive, and what is said of it."""

from __future__ import annotations

import pytest

from thinkback.turn.hints import Hint, hints
from thinkback.turn.spending import TurnUse
from thinkback.turn.usage import TokenUse

EFFORTS = ("none", "low", "medium", "high")


def turns(*counts: tuple[int | None, int | None], estimated: bool = False) -> list[TurnUse]:
    """Turns with these counts of output and reasoning."""
    uses = [TokenUse(None, None, output, reasoning, True, estimated) for output, reasoning in counts]
    return [TurnUse(at, "", "completed", use, ()) for at, use in enumerate(uses, 1)]


def test_five_turns_of_little_but_reasoning_are_told() -> None:
    """Over 80 % of the output: the share, and what to do, in the order in which it helps."""
    (hint,) = hints(turns(*[(100, 81)] * 5), "high", EFFORTS)
    assert ("excessive_reasoning", "81 % of the output of the last 5 turns was reasoning") == (hint.kind, hint.text)
    assert "set reasoning.effort to medium" == hint.next_actions[0]
    assert "system prompt" in hint.next_actions[1]


@pytest.mark.parametrize(
    "counts",
    [
        [],
        [(100, 99)] * 4,
        [(100, 80)] * 5,
        [(100, 99)] * 4 + [(1000, 0)],
        [(100, 99)] * 9 + [(100, 10)] * 5,
        [(None, None)] * 5,
        [(100, 99)] * 4 + [(None, None)],
    ],
)
def test_less_is_not_told(counts: list[tuple[int | None, int | None]]) -> None:
    """Fewer turns, exactly 80 %, an answer that makes up for it, or turns that are long past."""
    assert [] == hints(turns(*counts))


def test_what_was_estimated_is_said_so() -> None:
    """And where output was not counted, reasoning is all there is."""
    (hint,) = hints(turns(*[(None, 50)] * 5, estimated=True))
    assert "about 100 % of the output of the last 5 turns was reasoning" == hint.text


@pytest.mark.parametrize(
    ("effort", "efforts", "first"),
    [
        (None, EFFORTS, "set reasoning.effort to medium"),
        (None, (*EFFORTS, "xhigh", "max"), "set reasoning.effort to medium"),
        (None, ("high", "max"), "remove from the system prompt"),
        ("medium", EFFORTS, "set reasoning.effort to low"),
        ("low", EFFORTS, "remove from"),
        ("xhigh", EFFORTS, "set reasoning.effort to medium"),
        (None, (), "remove from"),
        (None, ("high",), "remove from"),
    ],
)
def test_less_effort_is_advised_where_there_is_less(effort: str | None, efforts: tuple[str, ...], first: str) -> None:
    """The next lower word that the model takes; never to stop thinking altogether."""
    (hint,) = hints(turns(*[(100, 90)] * 5), effort, efforts)
    assert isinstance(hint, Hint)
    assert hint.next_actions[0].startswith(first)
