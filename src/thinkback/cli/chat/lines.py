"""Lines from a pipe or file: each is a message, one that ends in a backslash goes on in the next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from thinkback.cli.chat.chat import Chat


class LineReader:
    """Reads ``source``; nobody is asked anything."""

    is_live = False

    def __init__(self, source: Iterable[str]) -> None:
        self._source = iter(source)

    def lines(self, _chat: Chat) -> Iterator[str]:
        """Each message, without its line end."""
        begun = ""
        for line in self._source:
            text = line.rstrip("\r\n")
            if text.endswith("\\"):
                begun += f"{text[:-1]}\n"
                continue
            yield begun + text
            begun = ""
        if begun:
            yield begun

    def ask(self, question: str, default: str = "", *, secret: bool = False) -> str:
        """Nobody answers: raises ``EOFError``."""
        raise EOFError(question)
