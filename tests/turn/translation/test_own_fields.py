"""Fields that programs add for one provider: found by name, and taken out of a body without touching the rest."""

from __future__ import annotations

import msgspec
import pytest

from thinkback.rules import load_rulebook
from thinkback.turn.translation import own_fields, without_own

ITEM = "internal_chat_message_metadata_passthrough"
OPENAI, AZURE = (load_rulebook().endpoint(name) for name in ("openai", "azure-openai"))


def test_they_are_found_where_they_stand() -> None:
    """At the top, or in any item; the value plays no part."""
    body: dict[str, object] = {"input": ["x", {"role": "user", ITEM: None}], "client_metadata": None, "diagnostics": {}}

    assert ("client_metadata", f"input.{ITEM}") == own_fields("openai-responses", body)
    assert ("diagnostics",) == own_fields("anthropic", body)
    assert () == own_fields("gemini", body)
    assert () == own_fields("openai-responses", {"input": ITEM})


@pytest.mark.parametrize(
    ("body", "left"),
    [
        pytest.param(
            b'{"input":[{"%b":{"a":1},"n":1.50},"x",{"n":2}],"client_metadata":{}}' % ITEM.encode(),
            b'{"input":[{"n":1.50},"x",{"n":2}]}',
            id="numbers stay as they are written",
        ),
        pytest.param(b'{"input":"\\"client_metadata\\""}', b'{"input":"\\"client_metadata\\""}', id="in a text"),
        pytest.param(b'{"input":"%b"}' % ITEM.encode(), b'{"input":"%b"}' % ITEM.encode(), id="as the whole text"),
        pytest.param(
            b'{"client_metadata":1,"input":"\\ud83d"}', b'{"input":"\\ud83d"}', id="beside half of a character"
        ),
    ],
)
def test_they_are_taken_out_where_the_place_may_not_know_them(body: bytes, left: bytes) -> None:
    """Everything else stays as it is written; a place that takes them gets the very bytes."""
    assert left == without_own("openai-responses", AZURE, body)
    assert body == without_own("openai-responses", OPENAI, body)
    assert body == without_own("gemini", AZURE, body)


def test_a_place_of_ones_own_may_take_some() -> None:
    """By its ``takes``."""
    relay = msgspec.structs.replace(AZURE, takes=("client_metadata",))

    assert b'{"client_metadata":1}' == without_own("openai-responses", relay, b'{"client_metadata":1}')
    assert b"{}" == without_own("openai-responses", relay, b'{"access_programs":1}')
