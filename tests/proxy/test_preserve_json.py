"""A planned request in the client's own bytes: it says what the plan says, and changes nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinkback.proxy.preserve_json import preserved

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(), max_size=6)
    | st.sampled_from(["user", "assistant", "text", "\ud800", "true"])
)
KEYS = st.sampled_from(["role", "type", "id", "content", "a", "b"])
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner), max_leaves=12)
MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant"]), "content": VALUES}, optional={"id": SCALARS}
)
MESSAGES = st.lists(MESSAGE, max_size=8)
BODIES = st.fixed_dictionaries(
    {}, optional={"model": SCALARS, "messages": MESSAGES, "input": MESSAGES, "stream": SCALARS, "x": VALUES}
)


def compact(value: Any) -> bytes:
    """As clients of JavaScript and new ones of Python write it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def spaced(value: Any) -> bytes:
    """As the standard library writes it unless told otherwise."""
    return json.dumps(value).encode()


def pretty(value: Any) -> bytes:
    """As people like to read it."""
    return b"\n" + json.dumps(value, indent=2).encode() + b"\n"


WRITTEN = st.sampled_from([compact, spaced, pretty])


def _same(one: Any, other: Any) -> bool:
    """Equal as JSON: ``true`` is not 1, 1.0 is."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


@given(BODIES, BODIES, WRITTEN, WRITTEN)
def test_the_result_says_what_the_plan_says(client: Any, plan: Any, one: Any, other: Any) -> None:
    """Whatever the two are, nothing but bytes comes from the client."""
    assert _same(plan, json.loads(preserved(one(client), other(plan))))


@given(BODIES, WRITTEN, WRITTEN)
def test_with_nothing_to_change_it_is_what_the_client_sent(body: Any, one: Any, other: Any) -> None:
    """A plan that says the same in another way is no reason to touch a byte."""
    assert one(body) == preserved(one(body), other(body))


@given(st.integers(1, 6), st.data(), st.sampled_from([compact, spaced]), WRITTEN)
def test_what_is_put_in_leaves_the_others_as_they_came(count: int, data: st.DataObject, one: Any, other: Any) -> None:
    """A reasoning item that the plan adds changes no byte of the messages around it."""
    said = [{"role": "user", "content": f"question {at}"} for at in range(count)]
    at = data.draw(st.integers(0, count))
    new = {"type": "reasoning", "id": "rs_1", "summary": []}

    done = preserved(one({"input": said}), other({"input": [*said[:at], new, *said[at:]]}))

    assert all(one(message) in done for message in said)


@pytest.mark.parametrize(
    ("client", "planned", "result"),
    [
        (b'{"b": 1e5, "a": 1}', b'{"a":2,"b":100000.0}', b'{"b":1e5,"a":2}'),
        (b'{"a":123456789012345678901234567890, "b":1}', b'{"b":2,"a":123456789012345678901234567890}', None),
        (b'{"a":"\\ud800", "b":[ ]}', b'{"b":[],"a":"\\ud800","c":1}', b'{"a":"\\ud800","b":[ ],"c":1}'),
        (b'{"a":1,"a":2 }', b'{"a":2}', b'{"a":1,"a":2 }'),
        (b'{"a":1,"b" : 3, "a":2 }', b'{"a":2,"b":4}', b'{"a":2,"b":4}'),
        (b'{"a":1}', b'{"a":true}', b'{"a":true}'),
        (b'{"a":[1, true]}', b'{"a":[1,1]}', b'{"a":[1,1]}'),
        (b'{"a":{"b": true}}', b'{"a":{"b":1.0}}', b'{"a":{"b":1.0}}'),
        (b'{"a":1.0}', b'{"a":1}', b'{"a":1.0}'),
        (b'{"a":1e400, "b":1}', b'{"a":1e400,"b":2}', b'{"a":1e400,"b":2}'),
        (b'{"gone":1,"stays" : "\\u00e9"}', '{"stays":"é"}'.encode(), b'{"stays":"\\u00e9"}'),
        (b'{"\\ud800":1, "b":"\\u0041"}', b'{"b":"A","\\ud800":2}', b'{"\\ud800":2,"b":"\\u0041"}'),
        (b'{"a":[[1 ],"\\udfff"]}', b'{"a":[[1],"\\udfff",2]}', b'{"a":[[1 ],"\\udfff",2]}'),
        (b"no JSON", b'{"a":1}', b'{"a":1}'),
        (b'{"a":[1,', b'{"a":[2]}', b'{"a":[2]}'),
        (b"[]", b"{}", b"{}"),
        (b"", b"{}", b"{}"),
    ],
)
def test_numbers_escapes_and_doubled_keys_survive(client: bytes, planned: bytes, result: bytes | None) -> None:
    """The client's order and spelling, the plan's values."""
    done = preserved(client, planned)

    assert result in (None, done)
    assert json.loads(planned) == json.loads(done)


def test_only_the_block_that_changed_changes() -> None:
    """A thinking block put in front leaves the bytes of the blocks beside it, and of the message around it."""
    client = b'{"messages": [{"content": [{"type": "text", "text": "caf\\u00e9"}], "role": "assistant"}], "model": "m"}'
    planned = (
        b'{"messages":[{"role":"assistant","content":['
        b'{"type":"thinking","thinking":"t","signature":"s"},{"type":"text","text":"caf\xc3\xa9"}]}],"model":"m"}'
    )

    assert (
        b'{"messages":[{"content":[{"type":"thinking","thinking":"t","signature":"s"},'
        b'{"type": "text", "text": "caf\\u00e9"}],"role":"assistant"}],"model":"m"}'
    ) == preserved(client, planned)


def test_what_the_plan_left_out_is_skipped() -> None:
    """Items in front of which others were dropped are found again."""
    items = [{"type": "reasoning", "id": f"rs_{at}"} for at in range(3)]
    said = [{"role": "user", "content": f"q{at}"} for at in range(4)]

    kept = [said[0], said[2], said[3]]

    done = preserved(spaced({"input": [*items, *said]}), compact({"input": kept, "store": False}))

    assert b'{"input":[%b],"store":false}' % b",".join(map(spaced, kept)) == done


def test_a_message_of_the_same_role_put_in_takes_nobody_s_place() -> None:
    """What is new stands in the plan's bytes, what comes behind it in the client's."""
    said = [{"role": "user", "content": f"q{at}"} for at in range(3)]
    new = {"role": "user", "content": "new"}

    done = preserved(spaced({"messages": said}), compact({"messages": [said[0], new, *said[1:], new]}))

    assert (
        b'{"messages":[%b]}'
        % b",".join((spaced(said[0]), compact(new), spaced(said[1]), spaced(said[2]), compact(new)))
        == done
    )


def test_cache_marks_are_those_of_the_client() -> None:
    """The log has a message as it was marked when it was said; the client has marked another one since."""
    mark = {"cache_control": {"type": "ephemeral"}}
    thought = {"type": "thinking", "thinking": "t", "signature": "s"}

    def body(first: Any, answer: list[Any], last: Any) -> dict[str, Any]:
        asked, told = {"type": "text", "text": "a"}, {"type": "text", "text": "c"}
        return {
            "messages": [
                {"role": "user", "content": [{**asked, **first}]},
                {"role": "assistant", "content": answer},
                {"role": "user", "content": [{**told, **last}]},
            ]
        }

    said = {"type": "text", "text": "b"}
    client = body({}, [{**said, **mark}], mark)
    planned = body(mark, [thought, said], {})

    assert compact(body({}, [thought, {**said, **mark}], mark)) == preserved(compact(client), compact(planned))
    assert spaced(client) == preserved(spaced(client), compact(body(mark, [said], {})))


def test_a_mark_stays_on_a_result_whose_call_has_another_id() -> None:
    """Clients make up ids where a provider gave none."""

    def body(id: str, **more: Any) -> bytes:
        result = {"type": "tool_result", "tool_use_id": id, "content": "7", **more}
        return compact({"messages": [{"role": "user", "content": [result]}]})

    marked = {"cache_control": {"type": "ephemeral"}}
    assert body("call_1", **marked) == preserved(body("mine", **marked), body("call_1"))
