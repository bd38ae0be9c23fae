"""``session.compile``: a conversation as neutral messages, now or then."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from thinkback.compile.neutral import Compiled, Options, compile_neutral
from thinkback.session.history.revisions import find

if TYPE_CHECKING:
    from thinkback.session.conversation import Conversation


def compiled(
    conversation: Conversation,
    at: str,
    at_time: int | None,
    include_reasoning: bool,
    strategy: Literal["full", "last", "adaptive"],
    turns: int,
    tokens: int,
    order: Sequence[str],
) -> Compiled:
    """The messages of the line that ends at ``at`` (the current one for none), as ``Session.compile`` says."""
    conversation.refresh()
    line = find(conversation, at).commits if at else conversation.history.commits
    conversation.line.hooks.run("pre_compile", line)
    hashes = tuple(_whole(name, [commit.hash for commit in line]) for name in order)
    options = Options(
        include_reasoning=include_reasoning,
        at_time=at_time,
        strategy=strategy,
        turns=turns,
        tokens=tokens,
        order=hashes,
    )
    return compile_neutral(line, options)


def _whole(name: str, hashes: Sequence[str]) -> str:
    """The one hash that begins with ``name``; a name that none or several begin with stays as it is."""
    found = [hash for hash in hashes if hash.startswith(name.lower())]
    return found[0] if len(found) == 1 else name
