"""Error bodies of the provider, and native parameters."""

from __future__ import annotations

from typing import Any

import pytest

from thinkback.model.commits import Failure
from thinkback.wire.mistral.chunks import read_failure
from thinkback.wire.mistral.parameters import options
from thinkback.wire.result import WantedOptions

EXTRA = {
    "type": "extra_forbidden",
    "loc": ["body", "messages", 1, "assistant", "x"],
    "msg": "Extra inputs are not permitted",
}
SAID = "body.messages.1.assistant.x: Extra inputs are not permitted"

BODIES: list[tuple[Any, Failure]] = [
    ({"detail": [EXTRA]}, Failure(SAID, 422, "extra_forbidden")),
    ({"detail": [{"msg": "a"}, {"loc": [], "msg": "b"}]}, Failure("a; b", 422)),
    ({"detail": [{"odd": 1}]}, Failure('{"odd":1}', 422)),
    ({"detail": "Unauthorized"}, Failure("Unauthorized", 422)),
    (
        {"object": "error", "message": {"detail": [EXTRA]}, "type": "invalid_request_error"},
        Failure(SAID, 422, "invalid_request_error"),
    ),
    (
        {
            "object": "error",
            "message": "Expected last role",
            "type": "invalid_request_message_order",
            "param": None,
            "code": "3230",
        },
        Failure("Expected last role", 422, "invalid_request_message_order", "3230"),
    ),
    (
        {"message": "Unauthorized", "request_id": "r", "code": 3000, "type": None},
        Failure("Unauthorized", 422, code="3000"),
    ),
    ({"error": {"message": "m", "type": "t", "code": None}}, Failure("m", 422, "t")),
    ({"error": "text"}, Failure("text", 422)),
    ({"odd": 1}, Failure('{"odd":1}', 422)),
    ("text", Failure("text", 422)),
    ([1], Failure("[1]", 422)),
    (None, Failure("null", 422)),
]


@pytest.mark.parametrize(("body", "expected"), BODIES)
def test_a_failure_is_in_the_providers_own_words(body: Any, expected: Failure) -> None:
    """Refused fields are named with their place; any other body gives a text too."""
    assert expected == read_failure(422, body)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (WantedOptions(), {}),
        (WantedOptions(stream=True, usage=True), {"stream": True}),
        (
            WantedOptions(schema={"type": "object"}, schema_name="x"),
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}},
        ),
    ],
)
def test_options_are_native_parameters(wanted: WantedOptions, expected: dict[str, Any]) -> None:
    """Usage is not asked for: it comes unasked, and unknown fields are refused."""
    assert expected == options(wanted)
