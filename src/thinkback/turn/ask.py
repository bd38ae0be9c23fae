"""What a caller wants of a turn."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from thinkback.model.blocks import ToolCall
from thinkback.model.commits import Compaction, Message, Tool
from thinkback.turn.permissions import Verdict
from thinkback.turn.plan import Plan


class Ask(msgspec.Struct):
    """What the caller wants of a turn.

    ``plan`` builds the next request from live settings; ``message`` is ``None`` to go on with what is in the log.
    ``runnable`` are the names of tools that ``RunTool`` can run. ``keep_text=False`` keeps readable reasoning out
    of the log; it stays in memory until the turn ends. ``sends`` is told of each plan before it goes out, ``refuses``
    says why a checkpoint must not be made (nothing: it may). ``fail_over`` is told why the place of the last plan did
    not answer, and names the next one, which ``plan`` then leads to; empty where there is none. It must come to an end.

    ``permit`` says of a call whether it may run, from live settings; ``asks``: a person is there to be asked.
    ``max_repeats`` is how often a call may fail in the same way.
    """

    plan: Callable[[], Plan]
    message: Message | None = None
    system: str | None = None
    tools: tuple[Tool, ...] | None = None
    runnable: frozenset[str] = frozenset()
    max_steps: int = 25
    max_retries: int = 3
    keep_text: bool = True
    sends: Callable[[Plan], object] = lambda plan: None
    refuses: Callable[[Compaction], str] = lambda found: ""
    fail_over: Callable[[str], str] = lambda reason: ""
    permit: Callable[[ToolCall], Verdict] = lambda call: Verdict("allow")
    asks: bool = False
    max_repeats: int = 3
