"""What a request says of itself, and which bodies are none."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.counting import calls
from thinkback.errors import WireError
from thinkback.proxy.request_view import Facts, check_keys, read_body, read_facts

ASKED: dict[str, dict[str, Any]] = {
    "anthropic": {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]},
    "gemini": {"contents": [{"parts": [{"text": "Hi"}]}]},
    "openai-chat": {"model": "m", "messages": [{"role": "user", "content": "Hi"}]},
    "openai-responses": {"model": "m", "input": "Hi"},
}
FRONTS = sorted(ASKED)


def facts(front: str, **params: Any) -> Facts:
    """The facts of the smallest request with ``params``."""
    model = "m" if front == "gemini" else ""
    return read_facts(front, {**ASKED[front], **params}, model=model)


@pytest.mark.parametrize("front", FRONTS)
def test_the_smallest_request_is_read(front: str) -> None:
    """A model and one message are enough."""
    found = facts(front)

    assert ("m", False, 1, "", "") == (
        found.model,
        found.streams,
        found.messages,
        found.end_user,
        found.previous_response,
    )


@pytest.mark.parametrize(
    ("front", "params", "user"),
    [
        ("openai-chat", {"user": "u"}, "u"),
        ("openai-chat", {"user": "u", "safety_identifier": "s"}, "s"),
        ("openai-chat", {"metadata": {"user_id": "m"}}, "m"),
        ("openai-responses", {"safety_identifier": "", "user": "u"}, "u"),
        ("anthropic", {"metadata": {"user_id": "u"}}, "u"),
        ("anthropic", {"metadata": {"user_id": None}}, ""),
        ("anthropic", {"metadata": None, "user": "not a parameter"}, ""),
        ("gemini", {"labels": {"user_id": "u"}}, "u"),
        ("gemini", {"labels": {"user": "u"}}, "u"),
    ],
)
def test_an_end_user_is_found_where_the_dialect_names_one(front: str, params: dict[str, Any], user: str) -> None:
    """The first name that is there and not empty decides."""
    assert user == facts(front, **params).end_user


@pytest.mark.parametrize(
    ("front", "params", "field", "value"),
    [
        ("openai-chat", {"stream": True}, "streams", True),
        ("openai-chat", {"stream": None}, "streams", False),
        ("openai-chat", {}, "wants_usage", False),
        ("openai-chat", {"stream_options": {"include_usage": True}}, "wants_usage", True),
        ("openai-chat", {"previous_response_id": "r"}, "previous_response", ""),
        ("anthropic", {}, "wants_usage", True),
        ("anthropic", {}, "takes_reasoning", False),
        ("anthropic", {"thinking": {"type": "disabled"}}, "takes_reasoning", False),
        ("anthropic", {"thinking": {"type": "adaptive", "display": "omitted"}}, "takes_reasoning", True),
        ("openai-chat", {}, "takes_reasoning", True),
        ("gemini", {"contents": {"parts": {"text": "Hi"}}}, "messages", 1),
        ("openai-responses", {"previous_response_id": "r", "input": None}, "previous_response", "r"),
        ("openai-responses", {"previous_response_id": "r", "input": None}, "messages", 0),
        ("openai-responses", {"input": [{"role": "user", "content": "Hi"}] * 3}, "messages", 3),
    ],
)
def test_what_the_response_is_to_be_like_is_read(front: str, params: dict[str, Any], field: str, value: Any) -> None:
    """Streaming, usage, reasoning, and what it goes on from."""
    assert value == getattr(facts(front, **params), field)


def test_what_the_address_says_counts() -> None:
    """Google's clients name the model there, and whether they want a stream."""
    found = read_facts("gemini", {**ASKED["gemini"], "model": "other"}, model="gemini-3-pro", streams=True)

    assert ("gemini-3-pro", True) == (found.model, found.streams)


@pytest.mark.parametrize(
    ("front", "body", "key"),
    [
        ("openai-chat", {"messages": [{"role": "user"}]}, "model"),
        ("openai-chat", {**ASKED["openai-chat"], "model": 3}, "model"),
        ("openai-chat", {**ASKED["openai-chat"], "model": ""}, "model"),
        ("openai-chat", {"model": "m"}, "messages"),
        ("openai-chat", {"model": "m", "messages": {}}, "messages"),
        ("openai-chat", {"model": "m", "messages": []}, "messages"),
        ("openai-chat", {**ASKED["openai-chat"], "stream": "yes"}, "stream"),
        ("openai-chat", {**ASKED["openai-chat"], "stream_options": True}, "stream_options"),
        ("openai-chat", {**ASKED["openai-chat"], "tools": {}}, "tools"),
        ("openai-chat", {**ASKED["openai-chat"], "user": 7}, "user"),
        ("openai-chat", {**ASKED["openai-chat"], "metadata": {"user_id": 7}}, "metadata.user_id"),
        ("openai-responses", {"model": "m"}, "input"),
        ("openai-responses", {"model": "m", "input": []}, "input"),
        ("openai-responses", {"model": "m", "input": 3}, "input"),
        ("openai-responses", {**ASKED["openai-responses"], "store": "no"}, "store"),
        ("anthropic", {**ASKED["anthropic"], "metadata": {"user_id": ["u"]}}, "metadata.user_id"),
        ("anthropic", {**ASKED["anthropic"], "thinking": "on"}, "thinking"),
        ("gemini", {"contents": "Hi", "model": "m"}, "contents"),
        ("gemini", {**ASKED["gemini"], "model": "m", "generation_config": []}, "generationConfig"),
    ],
)
def test_a_body_that_is_no_request_names_the_key(front: str, body: dict[str, Any], key: str) -> None:
    """The error says which key is at fault, and what should stand there."""
    with pytest.raises(WireError) as caught:
        read_facts(front, body)

    assert key == caught.value.details["parameter"]
    assert caught.value.message.startswith(f"{key} is ")
    assert caught.value.next_actions


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"3", b'"x"', b"\xff", b'{"a":1e999}', b"[" * 100_000])
def test_what_is_no_json_object_is_refused(data: bytes) -> None:
    """Broken JSON, JSON of another kind, and what is no text at all."""
    with pytest.raises(WireError):
        read_body(data)


@pytest.mark.parametrize("levels", [200, 900, 100_000])
def test_deep_json_is_refused(levels: int) -> None:
    """Nobody's request has so many levels, and later steps would break on them."""
    with pytest.raises(WireError):
        read_body(b'{"a":' * levels + b"1" + b"}" * levels)


def test_a_usual_body_is_read() -> None:
    """Half a surrogate pair is nothing unusual."""
    assert {"model": "m", "x": "\ud800"} == read_body(b'{"model":"m","x":"\\ud800"}')


KEYS = ["model", "messages", "input", "contents", "stream", "stream_options", "tools", "user", "metadata", "reasoning"]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["type", "user_id"]), inner),
    max_leaves=4,
)


@given(st.sampled_from(FRONTS), st.dictionaries(st.sampled_from([*KEYS, "thinking", "store", "labels"]), VALUES))
def test_no_body_breaks_it(front: str, body: dict[str, Any]) -> None:
    """Whatever the values are, there are facts, or an error that says which key is wrong."""
    try:
        found = [read_facts(front, body).model]
    except WireError as error:
        found = [str(error.details["parameter"])]

    assert all(found)


def test_the_facts_of_a_long_conversation_cost_nothing() -> None:
    """Ten thousand messages are counted, not read."""

    def body(messages: int) -> dict[str, Any]:
        said = [{"role": "user", "content": [{"type": "text", "text": "word " * 20}]}] * messages
        return {"model": "m", "messages": said}

    assert 10_000 == read_facts("openai-chat", body(10_000)).messages
    costs = [calls(partial(read_facts, "openai-chat", body(messages))) for messages in (10, 10_000)]
    assert costs[0] == costs[1]


@given(st.recursive(st.text(max_size=4) | st.integers(), lambda inner: st.dictionaries(st.text(max_size=4), inner)))
def test_no_key_stands_twice_where_none_does(value: object) -> None:
    """Whatever the texts are: colons, quotation marks and backslashes in them are no keys."""
    body = {"model": "m", "texts": [value, {'":': ":", "\\\\ ": " : ", '\\":': '{"a":1,"a":2}'}]}

    assert body == read_body(json.dumps(body).encode())
    assert body == read_body(json.dumps(body, ensure_ascii=False, indent=1).encode())


@pytest.mark.parametrize(
    ("data", "path"),
    [
        (b'{"a": 1, "b": {"c": [0, {"d": ":", "d" : ""}]}, "e": 2}', "b.c[1].d"),
        (b'{"a": 1, "\\u0061": 1}', "a"),
        (b'{"\\ud800": 1, "\\ud800": 1}', "\ud800"),
        (b'{"a": {"b": {"x": 1}, "b": 1}, "c": 1, "c": 1}', "c"),
        (b'{"%b": 1, "%b": 1}' % (b"k" * 300, b"k" * 300), "k" * 200 + "..."),
    ],
)
def test_a_key_that_stands_twice_is_named(data: bytes, path: str) -> None:
    """However it is written; one that was lost below another of the same name, too."""
    with pytest.raises(WireError, match="stands twice") as caught:
        read_body(data)

    assert path == caught.value.details["param"]


def test_looking_for_keys_that_stand_twice_is_cheap() -> None:
    """A few calls for each object that may hold one."""
    parts = [{"role": "user", "content": [{"type": "text", "text": f'"{at}": ' + "word " * 20}]} for at in range(6000)]
    data = json.dumps({"model": "m", "messages": parts}).encode()

    assert len(data) > 1_000_000
    assert calls(partial(check_keys, data, json.loads(data))) < 5 * 2 * len(parts)
