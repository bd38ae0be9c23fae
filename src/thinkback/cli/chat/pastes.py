"""What is pasted at the prompt: a file's path is told from text, and a large text is folded into one letter.

Promises: the letter that stands for a text cannot be typed, so that nothing else is taken for it; whatever deletes the
letter deletes the text.
"""

from __future__ import annotations

import os
import shlex
from bisect import bisect_right
from itertools import accumulate
from pathlib import Path
from urllib.parse import unquote, urlsplit

from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput
from prompt_toolkit.layout.utils import explode_text_fragments

_LINES, _LETTERS = 20, 2_000
# Halves of surrogate pairs: no input in UTF-8 is read as one.
_FIRST, _MOST = 0xD800, 0x400


def file_in(text: str) -> Path | None:
    """The file whose path ``text`` is and nothing else, written as terminals do where one is dropped on them: as it is,
    in quotation marks, with backslashes, or as a ``file://`` address.
    """
    text = text.strip()
    if "\n" in text:
        return None
    try:
        words = shlex.split(text)
    except ValueError:
        words = []
    for word in (text, *(words if len(words) == 1 else ())):
        path = os.path.expanduser(_of_address(word))
        if os.path.isfile(path):  # what can be no path is none, and no error
            return Path(path)
    return None


def _of_address(word: str) -> str:
    if not word.startswith("file://"):
        return word
    address = urlsplit(word)
    return unquote(address.path) if address.netloc in ("", "localhost") else word


class Pastes:
    """The folded texts of a prompt, each by the letter that stands for it."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def fold(self, text: str) -> str:
        """``text``, or the letter that stands for it in the line where it is large."""
        is_large = text.count("\n") >= _LINES or len(text) > _LETTERS
        if not is_large or len(self._texts) == _MOST:
            return text
        letter = chr(_FIRST + len(self._texts))
        self._texts[letter] = text
        return letter

    def unfold(self, line: str) -> str:
        """``line`` with the whole texts."""
        return "".join(self._texts.get(letter, letter) for letter in line) if self._texts else line

    def shown(self, letter: str) -> str:
        """What is seen of a letter of a line."""
        text = self._texts.get(letter)
        if text is None:
            return letter
        lines = len(text.splitlines())
        return f"[pasted {lines} lines]" if lines > 1 else f"[pasted {len(text)} letters]"


class Placeholders(Processor):
    """prompt_toolkit offers this by inheritance only."""

    def __init__(self, pastes: Pastes) -> None:
        self._pastes = pastes

    def apply_transformation(self, given: TransformationInput) -> Transformation:
        """A line with what is seen of each of its letters."""
        pieces = [(style, self._pastes.shown(text)) for style, text, *_ in explode_text_fragments(given.fragments)]
        begins = [0, *accumulate(len(text) for _, text in pieces)]
        return Transformation(
            [*pieces],
            source_to_display=lambda at: begins[min(at, len(pieces))] + max(at - len(pieces), 0),
            display_to_source=lambda at: min(bisect_right(begins, at) - 1, len(pieces)) + max(at - begins[-1], 0),
        )
