"""Laws of Cohere's dialect: nothing raises, cuts do not matter, what came goes back as it came."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.wire.cohere.feeding import BEGIN, body, end, event, feed, read, rewritten, stream
from tests.wire.feeding import check, cuts, each_byte
from thinkback.model import canonical
from thinkback.wire.cohere.read import raw_response

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["text", "type", "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)
INDEX = st.integers(0, 2)
TYPE = st.sampled_from(
    ["content-start", "content-delta", "tool-call-start", "tool-call-delta", "citation-start", "new"]
)
FIELD = st.sampled_from(["content", "tool_calls", "tool_plan", "citations", "new"])
EVENT = st.one_of(
    st.builds(
        lambda at, kind, text: event("content-delta", at, content={kind: text}),
        INDEX,
        st.sampled_from(["text", "thinking"]),
        st.text(max_size=4),
    ),
    st.builds(
        lambda at, text: event("tool-call-delta", at, tool_calls={"function": {"arguments": text}}),
        INDEX,
        st.text(max_size=4),
    ),
    st.builds(
        lambda at, id: event("tool-call-start", at, tool_calls={"id": id, "function": {"name": "f"}}),
        INDEX,
        st.text(max_size=4),
    ),
    st.builds(lambda text: event("tool-plan-delta", tool_plan=text), st.text(max_size=4)),
    st.builds(lambda type, at, field, value: event(type, at, **{field: value}), TYPE, INDEX, FIELD, JSON),
    st.builds(lambda type, value: {"type": type, "delta": value}, TYPE, JSON),
    st.builds(lambda value: {"type": "message-end", "delta": value}, JSON),
    st.builds(lambda value: {"message": value}, JSON),
)


@given(st.lists(EVENT, max_size=12), st.integers(0, 99))
def test_any_events_give_a_result(events: list[dict[str, Any]], seed: int) -> None:
    """Whatever comes in whatever order is read, equal at any cut, and the deltas say what the blocks say."""
    raw = stream(BEGIN, *events, end())
    whole = feed([raw])

    check(*whole)
    canonical.encode(raw_response(whole[1]))
    assert whole == feed(cuts(raw, seed, 50)) == feed(each_byte(raw))


@given(st.binary(max_size=60), st.sampled_from(["json", "sse"]))
def test_any_bytes_give_a_result(raw: bytes, framing: Any) -> None:
    """An error, or nothing that came whole."""
    whole = feed([raw], framing)

    assert whole == feed(each_byte(raw), framing)
    assert whole[1].response.error is not None


@given(st.dictionaries(st.sampled_from(["content", "tool_plan", "tool_calls", "citations", "new"]), JSON))
def test_any_message_gives_a_result(message: dict[str, Any]) -> None:
    """A body of anything is read."""
    assert read(body(message)).response.complete


ITEM = st.one_of(
    st.builds(lambda text: {"type": "text", "text": text}, st.text(max_size=5)),
    st.builds(lambda text: {"type": "thinking", "thinking": text}, st.text(max_size=5)),
)
CALL = st.builds(
    lambda id, arguments: {"id": id, "type": "function", "function": {"name": "f", "arguments": arguments}},
    st.sampled_from(["f_1", "f_2"]),
    st.text(min_size=1, max_size=5),
)


@given(st.lists(ITEM, max_size=4), st.lists(CALL, min_size=1, max_size=3), st.text(min_size=1, max_size=5))
def test_what_came_goes_back_as_it_came(items: list[Any], calls: list[Any], plan: str) -> None:
    """A response read, and a request with it read and written, are the same values."""
    message = {"role": "assistant", **({"content": items} if items else {}), "tool_plan": plan, "tool_calls": calls}
    request = {"model": "m", "messages": [{"role": "user", "content": "?"}, message]}

    assert message == raw_response(read(body(message)))["message"]
    assert request == rewritten(request)
