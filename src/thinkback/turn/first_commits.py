"""What a turn begins with."""

from __future__ import annotations

from thinkback.model.commits import Draft, Message, Tools
from thinkback.turn import orphans
from thinkback.turn.ask import Ask
from thinkback.turn.plan import History


def opening_drafts(ask: Ask, history: History) -> list[Draft]:
    """What mends an earlier, broken-off turn, then system and tools where they are others than before, the message."""
    drafts = orphans.closing_drafts(history.commits) if ask.message is not None else []
    if ask.system is not None and ask.system != orphans.last_system(history.commits):
        drafts.append(Draft("system", Message(ask.system)))
    if ask.tools is not None and ask.tools != history.tools:
        drafts.append(Draft("tools", Tools(ask.tools)))
    if ask.message is not None:
        drafts.append(Draft("user", ask.message))
    return drafts
