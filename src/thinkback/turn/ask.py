"""What a caller wants of a turn."""

from __future__ import annotations

import msgspec

from thinkback.model.commits import Message, Tool


class Ask(msgspec.Struct, frozen=True):
    """What the caller wants of a turn, as data.

    ``message`` is ``None`` to go on with what is in the log. ``runnable`` are the names of tools that ``RunTool`` can
    run. ``keep_text=False`` keeps readable reasoning out of the log; it stays in memory until the turn ends.
    ``asks``: a person can be asked about calls. ``max_repeats`` is how often a call may fail in the same way.
    ``leaves_on_bad_key``: a place that does not take its key is left for the next, where a person would be told.
    """

    message: Message | None = None
    system: str | None = None
    tools: tuple[Tool, ...] | None = None
    runnable: frozenset[str] = frozenset()
    max_steps: int = 25
    max_retries: int = 3
    keep_text: bool = True
    asks: bool = False
    max_repeats: int = 3
    leaves_on_bad_key: bool = False
