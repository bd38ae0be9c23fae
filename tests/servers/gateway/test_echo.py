"""What clients send back of recorded responses in another dialect: every opaque value comes back, in its order."""

from __future__ import annotations

import base64
import itertools
import json
import random
from collections.abc import Sequence
from typing import Any

import pytest

from tests.exchanges import Exchange
from tests.wire import recorded
from tests.wire.feeding import cuts
from tests.wire.fronts import read_back, reader_of, written
from thinkback.model.blocks import Block, Carrier, Origin, Text, ToolCall, Unknown, carriers_of
from thinkback.model.commits import Draft, block_draft
from thinkback.proxy.client_state import PREFIX, Keeper, opened
from thinkback.wire.registry import FRONTS, dialect

# Several texts of one response, of which chat completions make one; and the same text again and again.
MERGED = (
    "google-ai-studio--google-gemini-2-5-pro-preview-05-06-object-0",
    "google-ai-studio--reasoning-tool-roundtrip-streaming--3d4790-1",
    "google-vertex--testgooglecommon-vertex-gemini-2-5-pro-multi--1",
)
_TIES = ("item_id", "phase")


class Open:
    """Makes tokens that anybody can open."""

    def seal(self, data: bytes, scope: bytes) -> str:
        """``data`` in letters."""
        return PREFIX + base64.urlsafe_b64encode(data).decode()

    def open(self, token: str, scope: bytes) -> bytes:
        """What such a token holds."""
        return base64.urlsafe_b64decode(token.removeprefix(PREFIX))


OPEN = Open()


def echo(name: str, response: dict[str, Any]) -> dict[str, Any]:
    """A request with a response as a client of the dialect ``name`` keeps it."""
    match name:
        case "anthropic":
            return {"messages": [{"role": "assistant", "content": response["content"]}]}
        case "openai-responses":
            return {"input": response["output"]}
        case "openai-chat":
            return {"messages": [response["choices"][0]["message"]]}
        case _:
            return {"contents": [response["candidates"][0]["content"]]}


def opaque(blocks: Sequence[Block]) -> list[tuple[str, list[str]]]:
    """The kind of each block that has opaque values, and those."""
    found = [(type(block).__name__, [c.value for c in carriers_of(block) if c.kind not in _TIES]) for block in blocks]
    return [(kind, values) for kind, values in found if values]


def reopened(name: str, response: dict[str, Any]) -> list[Block]:
    """The blocks that the gateway has of a response that comes back."""
    ids = map(str, itertools.count()).__next__
    read = dialect(name).read_request(echo(name, response), ids, Origin(name, "", ""))
    drafts = opened(read.drafts, OPEN, b"", name).drafts
    return [draft.value for draft in drafts if isinstance(draft.value, Block)]


@pytest.mark.corpus
@pytest.mark.parametrize("name", FRONTS)
def test_what_a_client_sends_back_has_every_opaque_value(name: str, recorded_exchange: Exchange) -> None:
    """Without a memory, from the tokens alone, whole and streamed; a stream that ends in text may lack the last."""
    source, framing = recorded_exchange.data["dialect"], recorded.framing_of(recorded_exchange)
    if source == name or recorded.is_refused(recorded_exchange) or recorded_exchange.id in MERGED:
        return
    keeper = Keeper(OPEN, b"", Origin(source, "https://api.example.org", "m"), "r", None)
    seed = random.randrange(2**32)
    print(f"cuts of seed {seed}")
    made = written(
        name, reader_of(source, framing), cuts(recorded_exchange.body, seed), state=keeper.blocks, recorded=False
    )
    expected = opaque(made.result.blocks)
    if made.result.response.error is not None or not expected:
        return

    assert expected == opaque(reopened(name, json.loads(made.document)))
    if name in ("anthropic", "openai-responses"):
        streamed = dialect(name).raw_response(read_back(name, made.stream, "sse"))
        found = opaque(reopened(name, streamed))
        calls = any(isinstance(block, ToolCall) for block in made.result.blocks)
        assert (expected if calls else expected[: len(found)]) == found


SIGNED = (Carrier("thought_signature", "theirs"),)
CALLS = [ToolCall("", "f", "{}", carriers=SIGNED), ToolCall("", "f", '{"a":1}', carriers=(Carrier("encrypted", "x"),))]


def test_a_call_that_its_provider_gave_no_id_is_known_by_what_it_says() -> None:
    """Each takes the place of its own echo, also where two say the same; one that is not there is not said again."""
    keeper = Keeper(OPEN, b"", Origin("gemini", "https://api.example.org", "m"), "r", None)
    token = Unknown(
        "{}", (Carrier("encrypted", keeper.blocks([CALLS[1], CALLS[0], CALLS[0], Text("gone", carriers=SIGNED)])),)
    )
    echoed = [
        ToolCall("c1", "f", " {}"),
        ToolCall("c2", "f", '{"a": 1}'),
        ToolCall("c3", "f", "{}"),
        ToolCall("c4", "f", "{"),
    ]
    blocks: list[Block] = [token, *echoed]
    drafts = [block_draft(block, "r", at) for at, block in enumerate(blocks)]
    header = dialect("anthropic").read_request(
        {"messages": [{"role": "assistant", "content": "a"}]}, str, Origin("", "", "")
    )
    found = opened([Draft("response", header.drafts[0].value, "r"), *drafts], OPEN, b"", "anthropic").drafts

    assert [CALLS[0], CALLS[1], CALLS[0], echoed[3]] == [draft.value for draft in found[2:]]
