"""Canonical bytes: stable, reversible, lone surrogates included."""

from __future__ import annotations

import hashlib
import json
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinkback.model import canonical
from thinkback.model.blocks import Carrier, Origin, Text
from thinkback.model.commits import Commit, Draft, Failure, Head, Payload, Step, Tool, decode_payload

# Every text a model may send: all code points, surrogates among them, but no pair in two halves.
TEXTS = st.text(st.characters(codec=None, categories=None, exclude_categories=())).map(canonical.whole)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


def with_surrogates(value: Any) -> Any:
    """The same value with a lone surrogate for every zero in its texts."""
    if isinstance(value, str):
        return value.replace("0", "\ud800")
    if isinstance(value, dict):
        return {with_surrogates(key): with_surrogates(inner) for key, inner in value.items()}
    return [with_surrogates(inner) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize("kind", get_args(Payload), ids=lambda kind: kind.__name__)
@given(data=st.data())
def test_a_payload_survives_its_bytes(kind: type[Any], data: st.DataObject) -> None:
    """Decoding what was encoded gives the same value, and encoding that the same bytes, for every kind."""
    drawn = data.draw(st.from_type(kind))
    for value in (drawn, msgspec.convert(with_surrogates(msgspec.to_builtins(drawn)), kind)):
        encoded = canonical.encode(value)

        assert value == decode_payload(encoded)
        assert encoded == canonical.encode(decode_payload(encoded))


@given(JSON)
def test_json_survives_both_encodings(value: Any) -> None:
    """Any JSON value comes back from its canonical bytes and from its source text."""
    assert value == canonical.decode(canonical.encode(value))
    assert value == canonical.decode(canonical.source(value))
    assert value == json.loads(canonical.source(value))


@given(TEXTS)
def test_a_string_survives_its_bytes(text: str) -> None:
    """A string alone is what it is inside a value."""
    assert text == json.loads(canonical.string(text))
    assert canonical.encode([text]) == b"[%b]" % canonical.string(text)


def test_mappings_are_sorted_in_canonical_bytes_and_kept_in_source_text() -> None:
    """The order of keys does not change a hash, and does not change on the wire."""
    assert b'{"a":{"c":1,"d":2},"b":3}' == canonical.encode({"b": 3, "a": {"d": 2, "c": 1}})
    assert b'{"a":1,"b":"\\ud800"}' == canonical.encode({"b": "\ud800", "a": 1})
    assert '{"b":3,"a":{"d":2,"c":1}}' == canonical.source({"b": 3, "a": {"d": 2, "c": 1}})
    assert '{"b":"\\ud800","a":1}' == canonical.source({"b": "\ud800", "a": 1})


def test_defaults_are_left_out_of_stored_values() -> None:
    """A new field with a default changes no old bytes, with and without a lone surrogate."""
    assert b'{"type":"text","text":"a"}' == canonical.encode(Text("a"))
    assert b'{"type":"text","text":"\\ud800"}' == canonical.encode(Text("\ud800"))


REFUSED: list[bytes | str] = [
    b"",
    b"{",
    b'{"a":NaN}',
    b'{"a":-Infinity}',
    b'{"a":1e999}',
    b'{"s":"\\ud800","a":1e999}',
    b'{"s":"\\ud800","a":Infinity}',
    b'"\xff"',
    b"[" * 100_000,
    b'["\\ud800",' + b"[" * 100_000,
    "\ud800",
]


@pytest.mark.parametrize("data", REFUSED, ids=[repr(data[:20]) for data in REFUSED])
def test_what_is_no_json_is_refused_with_one_kind_of_error(data: bytes | str) -> None:
    """Malformed text, numbers that are none, bad UTF-8 and bottomless nesting are all decode errors."""
    with pytest.raises(msgspec.DecodeError):
        canonical.decode(data)


def test_surrogates_are_read_from_text_escapes_and_bytes() -> None:
    """A lone surrogate is accepted wherever it stands, finite numbers beside it too."""
    expected = {"s": "\ud800", "n": 1.5}

    assert expected == canonical.decode('{"s":"\ud800","n":1.5}')
    assert expected == canonical.decode(b'{"s":"\\ud800","n":1.5}')
    assert expected == canonical.decode(bytearray(b'{"s":"\xed\xa0\x80","n":1.5}'))
    assert Text("\ud800") == canonical.decode(b'{"type":"text","text":"\\ud800"}', Text)


def test_a_value_of_another_type_is_refused() -> None:
    """Well-formed JSON that is not what was asked for is a validation error."""
    with pytest.raises(msgspec.ValidationError):
        canonical.decode(b'{"type":"text"}', Text)
    with pytest.raises(msgspec.ValidationError):
        canonical.decode(b'{"type":"text","s":"\\ud800"}', Text)
    with pytest.raises(msgspec.ValidationError):
        canonical.decode(b'"\\ud800"', dict[str, Any])


def test_values_are_converted_as_decoded() -> None:
    """Half a character is a text where a text is expected, and a value of another type elsewhere."""
    assert {"a": "\ud800"} == canonical.convert({"a": "\ud800"}, dict[str, str])
    assert [3] == canonical.convert(["3"], list[int], strict=False)
    for value, type in (("\ud800", int), ({"\ud800": 1}, Text), (["3"], list[int])):
        with pytest.raises(msgspec.ValidationError):
            canonical.convert(value, type)


def test_halves_of_a_pair_become_one_character() -> None:
    """Only halves that stand together are a character; all else is left alone."""
    assert "a😀\ud800" == canonical.whole("a\ud83d\ude00\ud800")
    assert "\ufeffa\ude00\ud83d" == canonical.whole("\ufeffa\ude00\ud83d")
    assert "é😀" == canonical.whole("é😀")


def test_source_text_as_bytes() -> None:
    """Source text goes out unchanged; a surrogate in it as its escape."""
    assert b'{"a": "\xc3\xa9 \\ud800"}' == canonical.raw('{"a": "é \ud800"}')


def test_digests_are_sha256() -> None:
    """The hash is the plain SHA-256 of the bytes."""
    assert hashlib.sha256(b"abc").hexdigest() == canonical.digest(b"abc")


@pytest.mark.parametrize(
    "kind", [Carrier, Origin, Tool, Failure, Draft, Step, Head, Commit], ids=lambda kind: kind.__name__
)
def test_parts_are_values(kind: type[Any]) -> None:
    """Everything in the model is frozen: it can be hashed, shared and compared."""
    with pytest.raises(AttributeError):
        setattr(msgspec.convert(MINIMAL[kind], kind), msgspec.structs.fields(kind)[0].name, None)


MINIMAL: dict[type[Any], dict[str, Any]] = {
    Carrier: {"kind": "signature", "value": "s"},
    Origin: {"dialect": "d", "endpoint": "e", "requested_model": "m"},
    Tool: {"name": "f"},
    Failure: {"message": "m"},
    Draft: {"kind": "user", "value": {"type": "message", "text": "t"}},
    Step: {"id": "i", "drafts": [], "time": 1},
    Head: {},
    Commit: {
        "hash": "h",
        "parents": [],
        "seq": 0,
        "kind": "user",
        "value": {"type": "message", "text": "t"},
        "payload": "",
        "digest": "d",
        "time": 1,
    },
}
