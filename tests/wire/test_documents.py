"""What the dialects share: JSON objects of usual depth, and arguments that must be an object."""

from __future__ import annotations

import json
from typing import Any

import pytest

from thinkback.model.commits import Failure
from thinkback.wire.arguments import as_object
from thinkback.wire.documents import read_object


@pytest.mark.parametrize(
    ("payload", "expected", "may_be_cut"),
    [
        (b'{"a": [1]}', {"a": [1]}, False),
        (rb'{"a": "\ud83d\ude00"}', {"a": "😀"}, False),
        (rb'{"a": "\ud83d"}', {"a": "\ud83d"}, True),
        (rb'{"a": "\uD83D"}', {"a": "\ud83d"}, True),
        (b'{"a": "\xed\xa0\xbd"}', {"a": "\ud83d"}, True),
        (b'{"a":' + b"[" * 90 + b"]" * 90 + b"}", json.loads("[" * 90 + "]" * 90), False),
        (json.dumps({"a": [{}] * 200}).encode(), {"a": [{}] * 200}, False),
    ],
)
def test_an_object_is_read(payload: bytes, expected: Any, may_be_cut: bool) -> None:
    """Also with lone surrogates, with some depth, and with very many values."""
    read = read_object(payload)

    assert (expected if isinstance(expected, dict) else {"a": expected}, may_be_cut) == read


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        (b"{", "is not JSON"),
        (b"", "is not JSON"),
        (b"\n<html lang=en><title>No way</title>", 'the response is a web page (HTML), "No way", not JSON'),
        (b"<!doctype html>", "the response is a web page (HTML), not JSON"),
        (b"<htmlx>", "a part of the response is not JSON"),
        (b"\xff", "is not JSON"),
        (b"[1]", "not a JSON object of usual depth"),
        (b'{"a":' + b"[" * 101 + b"]" * 101 + b"}", "not a JSON object of usual depth"),
        (b"[" * 100_000, "is not JSON"),
    ],
)
def test_what_is_no_object_of_usual_depth_is_malformed(payload: bytes, said: str) -> None:
    """A failure, never an exception."""
    failure = read_object(payload)

    assert isinstance(failure, Failure)
    assert said in failure.message
    assert "malformed" == failure.type


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ('{ "b": 1.0, "a": 1e2 }', '{ "b": 1.0, "a": 1e2 }'),
        ("", "{}"),
        (" \n", "{}"),
        ("[1]", '{"arguments":"[1]"}'),
        ("5", '{"arguments":"5"}'),
        ('{"a', '{"arguments":"{\\"a"}'),
        ("\ud83d", '{"arguments":"\\ud83d"}'),
    ],
)
def test_arguments_become_an_object(arguments: str, expected: str) -> None:
    """One that came is spliced byte for byte; any other text stands inside one."""
    assert expected == as_object(arguments).decode()
