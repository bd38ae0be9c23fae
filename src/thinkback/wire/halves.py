"""Letters that a stream cuts into two surrogates, put together before anybody is shown one of them.

Promises: all that was said is shown, a half that stays alone too, in the order in which it came.
"""

from __future__ import annotations

from typing import TypeGuard

import msgspec

from thinkback.model import canonical
from thinkback.model.deltas import Delta, ReasoningDelta, TextDelta

_TEXTS = (TextDelta, ReasoningDelta)


class Halves:
    """Holds the first half of a letter back until its other one, or anything else, comes."""

    def __init__(self) -> None:
        self.held: TextDelta | ReasoningDelta | None = None

    def joined(self, deltas: list[Delta]) -> list[Delta]:
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
            if _ends_in_half(delta):
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


def _ends_in_half(delta: Delta) -> TypeGuard[TextDelta | ReasoningDelta]:
    """Whether the text of ``delta`` ends with the first half of a letter."""
    return isinstance(delta, _TEXTS) and "\ud800" <= delta.text[-1:] <= "\udbff"
