"""A response whose thinking nobody asked to read, as the provider gives it then: signatures stay, texts do not.

Promises: every other event and member stays as it came; bytes that are no JSON do not raise. Must not: decide who may
read what.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from thinkback.wire.framing import written_events
from thinkback.wire.splicing import spliced

# Inside a text the quotation marks would be escaped.
_DELTA = re.compile(rb'"type"\s*:\s*"thinking_delta"')
_TEXTS = frozenset({(b"content", b"", b"thinking"), (b"content_block", b"thinking")})


class Hiding:
    """Of one response; a stream is given in pieces of whole events."""

    def events(self, data: bytes) -> bytes:
        """``data`` without what is added to a thinking text."""
        if b"thinking" not in data:
            return data
        return b"".join(self.document(event) for event in written_events(data) if not _DELTA.search(event))

    def document(self, data: bytes) -> bytes:
        """``data`` with empty thinking texts."""
        return spliced(data, _is_text, lambda text: "") if b"thinking" in data else data


def _is_text(path: Sequence[bytes]) -> bool:
    return tuple(path) in _TEXTS
