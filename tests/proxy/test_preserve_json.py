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
KEYS = st.sampled_from(["role", "type", "id", "c", "a", "b"])
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


SAID = {"role": "assistant", "content": "It is 4."}
SIGNED = {"type": "text", "text": "It is 4."}


@pytest.mark.parametrize(
    ("client", "planned", "expected"),
    [
        ({**SAID, "annotations": [1]}, {**SAID, "reasoning": "r"}, {**SAID, "annotations": [1], "reasoning": "r"}),
        ({**SAID, "annotations": [1]}, {**SAID, "content": "<think>r</think>It is 4."}, None),
        ({**SAID, "content": [{**SIGNED, "cache_control": {}}]}, {**SAID, "reasoning": "r"}, None),
        ({**SAID, "content": [{**SIGNED, "x": 1}]}, {**SAID, "content": [{"type": "thinking"}, SIGNED]}, None),
        (
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}, "x": 1}, "partMetadata": {}}]},
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "s"}]},
            None,
        ),
        (
            {"role": "assistant", "tool_calls": [{"id": "c", "x": 1, "function": {"name": "f", "x": 2}}]},
            {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "2"}}]},
            None,
        ),
        (
            {"type": "function_call", "name": "f", "namespace": "n", "status": "s"},
            {"type": "function_call", "name": "f"},
            None,
        ),
    ],
)
def test_members_that_the_plan_has_no_word_for_are_the_clients(client: Any, planned: Any, expected: Any) -> None:
    """Of what the plan says too; a text in parts says the same as one."""
    written = json.loads(preserved(compact({"messages": [client]}), compact({"messages": [planned]})))["messages"][0]
    assert expected is None or expected == written
    added = {key: value for key, value in planned.items() if key not in client}
    kept = json.dumps(written)
    assert all(json.dumps(name) in kept for name in _own_names(client))
    assert added.items() <= written.items()
    assert '"status"' not in kept


def _own_names(value: Any) -> list[str]:
    """The names of members, at any level, that no plan in these tests has."""
    if isinstance(value, dict):
        own = [key for key in value if key in ("annotations", "x", "partMetadata", "namespace", "cache_control")]
        return [*own, *(name for held in value.values() for name in _own_names(held))] if value else own
    return [name for held in value for name in _own_names(held)] if isinstance(value, list) else []


@pytest.mark.parametrize(
    ("client", "planned"),
    [
        ({**SAID, "reasoning_content": "r"}, SAID),
        ({**SAID, "x": {"y": [{"thought_signature": "s"}]}}, SAID),
        ({**SAID, "x": 1}, {**SAID, "content": "It is 5."}),
        ({**SAID, "x": 1}, {**SAID, "tool_calls": [{"function": {"name": "f"}}]}),
        ({"role": "assistant", "content": None, "x": 1}, {"role": "assistant", "content": None}),
        ({"role": "assistant", "content": [{"type": {}}], "x": 1}, {"role": "assistant", "content": [{"type": []}]}),
        ({"role": "assistant", "content": [{"type": "image"}]}, {"role": "assistant", "content": [{"type": "other"}]}),
    ],
)
def test_reasoning_and_members_of_something_else_go_as_planned(client: Any, planned: Any) -> None:
    """What may be reasoning was decided; of another message the client's members say nothing."""
    assert {"messages": [planned]} == json.loads(
        preserved(compact({"messages": [client]}), compact({"messages": [planned]}))
    )


def test_parameters_go_as_planned() -> None:
    """Their names are all decided, also in a tool."""
    client = {"x": 1, "tools": [{"type": "function", "name": "f", "x": 1}], "messages": []}
    planned = {"tools": [{"type": "function", "name": "f"}], "messages": []}
    assert planned == json.loads(preserved(compact(client), compact(planned)))


def test_withheld_members_stay_behind() -> None:
    """They are for another provider."""
    client = {"messages": [{**SAID, "passed": 1, "x": 1}]}
    written = preserved(compact(client), compact({"messages": [SAID]}), ("passed",))
    assert {"messages": [{**SAID, "x": 1}]} == json.loads(written)


def test_members_without_a_value_do_not_go_along() -> None:
    """SDKs write them for what a response had no word of, and a strict provider refuses the names."""
    call = {"type": "tool_use", "id": "t1", "name": "f", "input": {}}
    client, planned = (
        json.dumps({"messages": [{"role": "assistant", "content": [{**call, **more}]}]}).encode()
        for more in ({"toolset_name": None, "caller": {"type": "direct"}}, {})
    )
    (sent,) = json.loads(preserved(client, planned))["messages"][0]["content"]
    assert {**call, "caller": {"type": "direct"}} == sent
