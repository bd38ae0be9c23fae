"""Letters that a stream cuts into two surrogates, put together before anybody is shown one of them.

Promises: all that was said is shown, a half that stays alone too, in the order in which it came.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from thinkback.model import canonical
from thinkback.model.deltas import Delta, ReasoningDelta, TextDelta

_LONG = 16 * 1024
"""Bytes from which on looking at the deltas costs less than looking for a mark."""


def may_hold_half(payload: bytes) -> bool:
    """Whether there may be half a letter in ``payload``: escaped, or as bytes that are no UTF-8."""
    return len(payload) > _LONG or b"\\u" in payload or b"\xed" in payload


class Halves:
    """Holds the first half of a letter back until its other one, or anything else, comes."""

    def __init__(self) -> None:
        self.held: TextDelta | ReasoningDelta | None = None

    def joined(self, deltas: Sequence[Delta]) -> list[Delta]:
        """``deltas`` without a first half at their end."""
        result: list[Delta] = []
        for delta in deltas:
            held = self.held
            if held is not None:
                self.held = None
                if isinstance(delta, type(held)) and delta.index == held.index:
                    delta = msgspec.structs.replace(delta, text=canonical.whole(held.text + delta.text))
                else:
                    result.append(held)
            if isinstance(delta, TextDelta | ReasoningDelta) and "\ud800" <= delta.text[-1:] <= "\udbff":
                self.held = msgspec.structs.replace(delta, text=delta.text[-1])
                delta = msgspec.structs.replace(delta, text=delta.text[:-1])
                if not delta.text:
                    continue
            result.append(delta)
        return result

    def released(self) -> list[Delta]:
        """The half that stays alone, if one is held."""
        held, self.held = self.held, None
        return [held] if held is not None else []
