"""Fields that programs add for one provider: found by name, and taken out of a body without touching the rest."""

from __future__ import annotations

import msgspec
import pytest

from thinkback.model.blocks import Origin, ToolResult, Unknown
from thinkback.model.commits import Message, Response
from thinkback.model.plan import NOTHING
from thinkback.rules import load_rulebook
from thinkback.turn.own_fields import not_for, own_fields, taking_all, writer_for

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
    ("item", "left"),
    [
        pytest.param(
            f'{{"role":"user","{ITEM}":{{"a":1}},"n":1.50}}',
            '{"role":"user","n":1.50}',
            id="numbers stay as they are written",
        ),
        pytest.param(f'{{"role":"user","content":"\\"{ITEM}\\""}}', None, id="in a text"),
        pytest.param(f'{{"role":"user","content":"{ITEM}"}}', None, id="as the whole text"),
        pytest.param(f'{{"{ITEM}":1,"content":"\\ud83d"}}', '{"content":"\\ud83d"}', id="beside half of a character"),
    ],
)
def test_items_are_written_without_them_where_the_place_may_not_know_them(item: str, left: str | None) -> None:
    """Whoever said them; everything else stays as it is written, and a place that takes them gets the very bytes."""
    for place, expected in ((AZURE, left or item), (taking_all(AZURE), item), (OPENAI, item)):
        writer = writer_for(place)
        written = (
            writer.message("user", Message("", wire=item, dialect="openai-responses")),
            *writer.assistant(Response(Origin("openai-responses", "", "")), [Unknown(item)], NOTHING),
            *writer.results([ToolResult("c", "", wire=item, dialect="openai-responses")]),
        )
        assert {expected} == {source.decode() for source in written}


def test_a_place_of_ones_own_may_take_some() -> None:
    """By its ``takes``; what stays behind is named with the place."""
    relay = msgspec.structs.replace(AZURE, takes=("client_metadata",))
    own = ("client_metadata", f"input.{ITEM}")

    assert [f"input.{ITEM}"] == list(not_for(relay, own))
    assert list(own) == list(not_for(AZURE, own))
    assert AZURE.id in not_for(AZURE, own)["client_metadata"]
    assert {} == not_for(OPENAI, own)
