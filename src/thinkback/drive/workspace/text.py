"""Text files as a model reads and changes them: encoding and line ends are found, and kept by what writes back."""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

from thinkback.errors import ToolFailed

_ENDS = re.compile("\r\n|\n|\r")
# How far to look for a byte that text does not have.
_SAMPLE = 8192
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class Written(NamedTuple):
    """A file's text without its byte order mark, and how to write it back."""

    text: str
    encoding: str
    mark: bytes

    def encoded(self, text: str) -> bytes:
        """``text`` in this encoding. Raises ``ToolFailed`` for characters that it does not have."""
        try:
            return self.mark + text.encode(self.encoding)
        except UnicodeEncodeError as error:
            raise ToolFailed(
                f"the file is {self.encoding}, which has no {text[error.start]!r}",
                next_actions=("Leave that character out, or write the whole file anew as UTF-8 with write.",),
            ) from None


def decode(data: bytes, shown: str) -> Written:
    """The text of a file: by its mark, else UTF-8, else Latin-1. Raises ``ToolFailed`` for what is no text."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _decoded(data, encoding, mark, shown)
    if b"\0" in data[:_SAMPLE]:
        raise _binary(data, shown)
    try:
        return _decoded(data, "utf-8", b"", shown)
    except ToolFailed:
        return _decoded(data, "latin-1", b"", shown)


def lines(text: str) -> list[str]:
    """The lines of ``text`` without their ends."""
    found = _ENDS.split(text)
    return found[:-1] if found[-1] == "" else found


def line_end(text: str) -> str:
    """How the lines of ``text`` end: CRLF only where all do."""
    return "\r\n" if "\r\n" in text and "\n" not in text.replace("\r\n", "") else "\n"


def _decoded(data: bytes, encoding: str, mark: bytes, shown: str) -> Written:
    try:
        return Written(data[len(mark) :].decode(encoding), encoding, mark)
    except UnicodeDecodeError:
        raise _binary(data, shown) from None


def _binary(data: bytes, shown: str) -> ToolFailed:
    return ToolFailed(f"{shown} is not text: {len(data):,} bytes of something else")
