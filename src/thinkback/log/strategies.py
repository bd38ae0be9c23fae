"""A whole checkpoint by its strategy, with the summary that the log alone can give; one line per strategy."""

from __future__ import annotations

from collections.abc import Callable

from thinkback.log.compaction import Cut, Wish, checkpoint, cut
from thinkback.log.digest import digest, note, survivors
from thinkback.log.outline import Outline
from thinkback.log.summary import checked
from thinkback.model.commits import Compaction, CompactionStrategy

_SUMMARIES: dict[CompactionStrategy, Callable[[Outline, Cut, Wish], str]] = {
    "deterministic": lambda outline, found, wish: digest(outline, found),
    "middle_out": lambda outline, found, wish: digest(outline, found),
    # What stands in for it until a model has written one.
    "model": lambda outline, found, wish: digest(outline, found),
    "sliding_window": lambda outline, found, wish: note(outline, found),
    "manual": lambda outline, found, wish: checked(wish.text, survivors(outline, found)),
}


def made(outline: Outline, wish: Wish) -> Compaction:
    """The checkpoint that ``wish`` describes.

    Raises ``CompactionRefused`` where there is nothing to do, or a text by hand lacks what must survive.
    """
    if wish.strategy == "tool_results":
        return checkpoint(outline, wish, None)
    found = cut(outline, wish)
    return checkpoint(outline, wish, found, _SUMMARIES[wish.strategy](outline, found, wish))
