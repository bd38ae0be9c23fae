"""Token counts mean the same whatever the dialect counts where."""

from __future__ import annotations

import pytest

from tests.compile.build import ANTHROPIC, call, say, think, thought
from thinkback.model.commits import Usage
from thinkback.turn.usage import TokenUse, summed, token_use

THOUGHT = think("x" * 400)


@pytest.mark.parametrize(
    ("usage", "word", "expected"),
    [
        (Usage(10, 20, 5, 3), "inside", TokenUse(10, 3, 20, 5, True)),
        (Usage(10, 20, 5), "added", TokenUse(10, None, 25, 5, False)),
        (Usage(10, 20, 5), "unknown", TokenUse(10, None, 20, 5, None)),
        (Usage(10, 20, 5, counted=("reasoning_beside_output",)), "inside", TokenUse(10, None, 25, 5, False)),
        (
            Usage(10, 20, cached=3, cache_write=4, counted=("cache_beside_input",)),
            "inside",
            TokenUse(17, 3, 20, None, True),
        ),
        (Usage(10, 20, counted=("cache_beside_input",)), "inside", TokenUse(10, None, 20, None, True)),
        (Usage(None, 20, cached=3, counted=("cache_beside_input",)), "inside", TokenUse(None, 3, 20, None, True)),
        (Usage(10, 0, 5), "added", TokenUse(10, None, 5, 5, False)),
        (Usage(10, None, 5), "added", TokenUse(10, None, None, 5, False)),
    ],
)
def test_counts_are_brought_to_one_meaning(usage: Usage, word: str, expected: TokenUse) -> None:
    """Input with what was cached, output with what was reasoned."""
    assert expected == token_use(usage, [say("x")], word)


@pytest.mark.parametrize(
    ("usage", "word", "reasoning"),
    [
        (None, "inside", 100),
        (Usage(10, 500), "inside", 100),
        (Usage(10, 40, 0), "inside", 40),
        (Usage(10, 40), "unknown", 40),
        (Usage(10, 40), "added", 100),
        (Usage(10, 0), "inside", 100),
    ],
)
def test_reasoning_that_was_not_counted_is_estimated(usage: Usage | None, word: str, reasoning: int) -> None:
    """From what arrived, and never more than the output it is a part of."""
    use = token_use(usage, [THOUGHT, say("y")], word)
    assert (reasoning, True) == (use.reasoning, use.estimated)


def test_hidden_reasoning_is_what_the_visible_output_leaves() -> None:
    """A summary says nothing of 5,000 tokens; the text may have a quarter more than its length says."""
    summary, hidden = think("s" * 400, kind="summary"), thought(ANTHROPIC, value="x" * 40)
    assert 5000 - 125 == token_use(Usage(10, 5000), [summary, say("t" * 400)], "inside").reasoning
    assert 5000 - 125 - 2 == token_use(Usage(10, 5000, 0), [hidden, call(), say("t" * 400)], "unknown").reasoning
    signed = thought(ANTHROPIC, "s" * 400)
    assert 5000 - 125 == token_use(Usage(10, 5000), [signed, say("t" * 400)], "inside").reasoning
    assert 100 == token_use(Usage(10, 120), [summary, say("t" * 400)], "inside").reasoning
    assert 100 == token_use(Usage(10, 5000), [summary], "added").reasoning


def test_what_repeats_or_marks_is_not_estimated() -> None:
    """A double of another block, or a placeholder, was not reasoned."""
    blocks = [think("x" * 400, is_hidden=True), thought(ANTHROPIC, "Thinking...", marker=True)]
    assert TokenUse(inside=True) == token_use(None, blocks, "inside")


def test_uses_are_summed() -> None:
    """What nobody reported stays unknown; a guess among them makes the sum one."""
    assert summed([]) is None
    one = TokenUse(10, None, 20, 5, True)
    assert one == summed([one])
    assert TokenUse(20, None, 40, 12, True, True) == summed([one, TokenUse(10, None, 20, 7, True, True)])
    assert TokenUse(10, None, 20, 5, None) == summed([one, TokenUse(inside=False)])


def test_a_number_below_zero_was_not_counted() -> None:
    """No total gets smaller by it."""
    said = Usage(input=-5, output=-3, reasoning=-2, cached=-1, cache_write=-9, counted=("cache_beside_input",))
    assert TokenUse(inside=True) == token_use(said, (), "inside")
