"""Values and bytes to damage: what each dialect sends and takes, and strategies that break it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

from bench.bare import frames
from bench.dialects import FRAMINGS, stream_of
from tests.wire import event_stream

# "" and 0 and null in all places, lone halves of characters, numbers too large for machines, things in the wrong place.
SCALARS = st.none() | st.booleans() | st.sampled_from(["", "x", "text", "\ud83d", "é", 0, -1, 1, 2**70, 1e300, 0.5])
JUNK = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["type", "text", "id", "index", "content", "x"]), inner, max_size=2)
    ),
    max_leaves=4,
)


def values_of(dialect: str) -> list[Any]:
    """The events of a short stream, as values."""
    return [json.loads(payload) for payload in frames(dialect, stream_of(dialect, 4).body)]


def shape_of(value: Any) -> Any:
    """The keys and types in ``value``, to tell one kind of event from another."""
    if isinstance(value, dict):
        return tuple((key, shape_of(inner)) for key, inner in value.items())
    return tuple(map(shape_of, value)) if isinstance(value, list) else type(value)


def _places(value: Any) -> int:
    """How many values there are in ``value``, itself among them."""
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(_places, children))


def _put(value: Any, place: int, new: Any) -> Any:
    """``value`` with its value number ``place`` replaced."""
    if place == 0:
        return new
    items = list(value.items() if isinstance(value, dict) else enumerate(value))
    place -= 1
    for at, (key, child) in enumerate(items):
        size = _places(child)
        if place < size:
            items[at] = (key, _put(child, place, new))
            break
        place -= size
    return dict(items) if isinstance(value, dict) else [child for _, child in items]


def each_damage(value: Any) -> Iterator[Any]:
    """``value`` with each of the values in it replaced by one of each type, one at a time."""
    for place in range(_places(value)):
        for new in (None, True, 7, "x", ["x"], {"type": "x"}):
            yield _put(value, place, new)


@st.composite
def damaged(draw: st.DrawFn, value: Any) -> Any:
    """``value`` with up to three of the values in it replaced by anything."""
    for _ in range(draw(st.integers(0, 3))):
        value = _put(value, draw(st.integers(0, _places(value) - 1)), draw(JUNK))
    return value


@st.composite
def damaged_streams(draw: st.DrawFn, dialect: str) -> bytes:
    """A stream whose events were damaged, left out, doubled and put elsewhere."""
    events = values_of(dialect)
    at = draw(st.lists(st.integers(0, len(events) - 1), min_size=1, max_size=8))
    keeps_order = draw(st.booleans())
    return streamed(dialect, [draw(damaged(events[place])) for place in (sorted(at) if keeps_order else at)])


def streamed(dialect: str, events: list[Any]) -> bytes:
    """Events as the body of a stream."""
    payloads = [json.dumps(event).encode() for event in events]
    if FRAMINGS[dialect] == "ndjson":
        return b"".join(payload + b"\n" for payload in payloads)
    if FRAMINGS[dialect] == "sse":
        return b"".join(b"data: " + payload + b"\n\n" for payload in payloads)
    return b"".join(map(_message, events, payloads))


def _message(event: Any, payload: bytes) -> bytes:
    """An event of the binary stream; its type is known by what is in it."""
    keys = event if isinstance(event, dict) else {}
    kind = next((kind for key, kind in _TYPES.items() if key in keys), "contentBlockStop")
    return event_stream.message({":event-type": kind, ":message-type": "event"}, payload)


_TYPES = {
    "delta": "contentBlockDelta",
    "start": "contentBlockStart",
    "role": "messageStart",
    "stopReason": "messageStop",
    "usage": "metadata",
}
