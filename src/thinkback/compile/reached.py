"""How far the messages of a request are."""

from __future__ import annotations

from typing import Literal

# How many of the messages that are left out an error names.
_NAMED = 3


class Reached:
    """How far the messages are: their number, the role of the last, and how many responses came.

    ``began``: another message than a system message was among them; ``stripped``: a setting took away reasoning that
    the provider would keep. ``first`` is who said the first message that is no system message (``calls``: the
    assistant, with calls), ``left`` how many were left out before it, and ``named`` some of them. ``changed`` is the
    ``seq`` of the last commit that changed something. A rendering changes a copy of its own.
    """

    __slots__ = ("began", "changed", "first", "left", "messages", "named", "responses", "role", "stripped")

    def __init__(self) -> None:
        self.messages = self.responses = self.left = 0
        self.role = ""
        self.began = self.stripped = False
        self.first: Literal["", "user", "assistant", "calls"] = ""
        self.named: tuple[str, ...] = ()
        self.changed = -1

    def copy(self) -> Reached:
        """A twin that may be changed."""
        twin = Reached()
        twin.messages, twin.responses, twin.role = self.messages, self.responses, self.role
        twin.began, twin.stripped, twin.changed = self.began, self.stripped, self.changed
        twin.first, twin.left, twin.named = self.first, self.left, self.named
        return twin

    def leave(self, hash: str, why: str) -> None:
        """One more message or response that does not go."""
        if not self.first:
            self.left += 1
            if len(self.named) < _NAMED:
                self.named += (f"{hash[:12]} ({why})",)


START = Reached()
