"""A model writes the title of a session: through a session of its own in memory, so that the history is not touched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from thinkback.errors import NotFoundError, ThinkbackError
from thinkback.log.tally import title_of
from thinkback.session.history.asking import apart_from
from thinkback.settings.registry import TITLE

if TYPE_CHECKING:
    from thinkback.compile.neutral import Compiled
    from thinkback.session.conversation import Conversation
    from thinkback.session.session import Session

_SYSTEM = (
    "You get the beginning of a conversation. Answer with a title for it of three to seven words, in its language, and "
    "with nothing else: no quotation marks, no full stop."
)
_MOST = 2_000


def set_title(session: Session, text: str = "") -> str:
    """Have lists call ``session`` ``text``; without one, the session's model writes it. Returns the title.

    Raises ``NotFoundError`` where nothing was said yet, ``ThinkbackError`` where the model writes none.
    """
    title = title_of(text or _written(session.conversation, session.compile())).strip("\"'.*# ")
    if not title:
        raise ThinkbackError("the model wrote no title", next_actions=("give one: `thinkback title SESSION TEXT`",))
    session.set(TITLE, title)
    return title


def _written(conversation: Conversation, compiled: Compiled) -> str:
    said = [m for m in compiled.to_dicts() if m["role"] in ("user", "assistant") and m["content"]]
    if not said:
        raise NotFoundError("the session has no messages yet to make a title from")
    beginning = "\n\n".join(f"{message['role']}: {str(message['content'])[:_MOST]}" for message in said[:2])
    configuration = conversation.current()
    configuration.target  # noqa: B018 - where nobody said where requests go, it raises what to do
    settings: dict[str, object] = {"compaction.auto": False}
    if not configuration.settings().strict:
        settings["reasoning.effort"] = "low"  # a title needs no thoughts that cost
    with apart_from(conversation.store, configuration.place, "title") as apart:
        return apart.chat(beginning, system=_SYSTEM, settings=settings, max_steps=1).text
