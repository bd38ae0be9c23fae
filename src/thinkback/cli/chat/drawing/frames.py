"""Text in frames: what arrived while the last frame stood is drawn at once, in one piece, so that a fast model costs
no more than a person can see.

Promises: what comes after a pause is drawn when it comes, and nothing is held back while nothing arrives.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from msgspec.structs import replace

from thinkback.drive.resting import resting
from thinkback.model.deltas import Delta, ReasoningDelta, TextDelta

SECONDS = 0.02


@contextmanager
def frames(
    draw: Callable[[Delta], None], sleep: Callable[[float], object] = time.sleep
) -> Iterator[Callable[[Delta], None]]:
    """Gives what ``draw`` is to be called by, delta by delta. All of them are drawn when the block ends."""
    held: list[ReasoningDelta | TextDelta] = []
    rests = False

    def draw_held() -> None:
        if held:
            whole = replace(held[0], text="".join(delta.text for delta in held))
            held.clear()
            draw(whole)

    def rest() -> None:
        nonlocal rests
        rests = True
        if held:
            draw_held()
            sleep(SECONDS)

    def show(delta: Delta) -> None:
        # nothing may wait for a rest that does not come
        if not rests or not isinstance(delta, ReasoningDelta | TextDelta):
            draw_held()
            draw(delta)
            return
        if held and (type(delta), delta.index, delta.response) != (type(held[0]), held[0].index, held[0].response):
            draw_held()
        held.append(delta)

    try:
        with resting(rest):
            yield show
    finally:
        draw_held()
