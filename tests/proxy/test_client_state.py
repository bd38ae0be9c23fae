"""What clients keep for the gateway: sealed, sent back, opened."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from thinkback.errors import WireError
from thinkback.model.blocks import Block, Carrier, Origin, Text, ThinkingBlock, ToolCall
from thinkback.model.commits import Draft, Message, Request, Response, block_draft
from thinkback.proxy import client_state
from thinkback.proxy.client_state import Keeper, Minted, holds_tokens, opened
from thinkback.servers.gateway.secrets.sealing import Sealer

ORIGIN = Origin("openai-responses", "https://api.openai.com/v1", "gpt-6", "gpt-6", "acct", True)
SCOPE, OTHER = b"a" * 16, b"b" * 16
SEALER = Sealer(b"s" * 32)
CALL = ToolCall("c1", "look", "{}", carriers=(Carrier("thought_signature", "sig"),), wire='{"own":1}')
HIDDEN = ThinkingBlock("why", kind="summary", carriers=(Carrier("encrypted", "gAAA"),), wire='{"type":"reasoning"}')


def keeper(minted: Minted | None = None) -> Keeper:
    return Keeper(SEALER, SCOPE, ORIGIN, "r1", minted)


def echo(*blocks: Block) -> list[Draft]:
    """A response as a client sends it back."""
    header = Response(Origin("openai-chat", "", ""), blocks=len(blocks))
    return [
        Draft("user", Message("hi")),
        Draft("response", header, "x"),
        *(block_draft(block, "x", at) for at, block in enumerate(blocks)),
        Draft("user", Message("and?")),
    ]


def reopened(drafts: Sequence[Draft], scope: bytes = SCOPE) -> list[Draft]:
    return opened(drafts, SEALER, scope, "anthropic").drafts


def test_a_providers_own_value_comes_back_with_its_origin() -> None:
    """In the block and in what stands on the wire."""
    token = keeper().value("gAAA")
    block = ThinkingBlock("", signature=token, wire=f'{{"type":"thinking","signature":"{token}"}}')
    drafts = reopened(echo(block, Text("hello")))

    header, thought = drafts[1].value, drafts[2].value
    assert isinstance(header, Response)
    assert ORIGIN == header.origin
    assert ThinkingBlock("", signature="gAAA", wire='{"type":"thinking","signature":"gAAA"}') == thought
    assert ["user", "response", "reasoning", "assistant", "user"] == [draft.kind for draft in drafts]


def test_blocks_come_back_whole_and_their_readable_echo_goes() -> None:
    """A call takes the place of its echo; what a client shows of reasoning is not said beside what was minted."""
    token = keeper().blocks([HIDDEN, CALL])
    details = ThinkingBlock("", source_field="reasoning_details", carriers=(Carrier("encrypted", token),))
    drafts = reopened(echo(ThinkingBlock("why"), details, ToolCall("c1", "look", " {} ")))

    assert [HIDDEN, CALL] == [draft.value for draft in drafts[2:-1]]


def test_reasoning_in_a_token_that_stands_last_comes_before_what_it_led_to() -> None:
    """Gemini's clients keep the state of a whole response in an empty part behind it."""
    token = keeper().blocks([HIDDEN, Text("hello")])
    last = Text("", carriers=(Carrier("thought_signature", token),))
    drafts = reopened(echo(ThinkingBlock("why"), Text("hello"), last))

    assert [HIDDEN, Text("hello"), Text("")] == [draft.value for draft in drafts[2:-1]]


def test_reasoning_before_a_text_that_lost_its_name_goes_without_its_own() -> None:
    """Responses refuses a named item whose follower, which clients of other dialects send without a name, is not there;
    a call is known by its id, and what nothing follows stays as it was.
    """
    named = ThinkingBlock("why", kind="summary", carriers=(Carrier("item_id", "rs_1"), Carrier("encrypted", "gAAA")))
    token = keeper().blocks([named])
    thought = ThinkingBlock("why", signature=token)
    bare = msgspec.structs.replace(named, carriers=(Carrier("encrypted", "gAAA"),))
    followers: list[list[Block]] = [[Text("hello")], [Text("hello"), CALL], [ToolCall("c1", "look", "{}")], []]
    found = [reopened(echo(thought, *after))[2].value for after in followers]

    assert [bare, bare, named, named] == found


def test_text_that_a_client_keeps_in_pieces_is_one_again() -> None:
    """Clients of Gemini make a part of each event; the last one has the token."""
    said = Text("hello you", carriers=(Carrier("thought_signature", "sig"),))
    token = keeper().blocks([HIDDEN, said])
    pieces = [Text("hel"), Text("lo "), Text("you", carriers=(Carrier("thought_signature", token),))]
    drafts = reopened(echo(ThinkingBlock("why"), *pieces))

    assert [HIDDEN, said] == [draft.value for draft in drafts[2:-1]]


@pytest.mark.parametrize("scope", [OTHER, b""])
def test_a_token_of_another_scope_is_taken_away(scope: bytes) -> None:
    """With the reasoning that it stood for; text and calls stay."""
    token = keeper().value("gAAA")
    call = ToolCall("c1", "look", "{}", carriers=(Carrier("thought_signature", token),), wire=f'{{"s":"{token}"}}')
    drafts = reopened(echo(ThinkingBlock("why", signature=token), Text("hello"), call), scope)

    assert [Text("hello"), ToolCall("c1", "look", "{}")] == [draft.value for draft in drafts[2:-1]]
    header = drafts[1].value
    assert isinstance(header, Response)
    assert ("", 2) == (header.origin.endpoint, header.blocks)


def test_what_is_bound_to_its_request_comes_back_with_its_digests() -> None:
    """The record stands before the response, which names it."""
    token = keeper(Minted("s", "t", "m")).value("sig")
    drafts = reopened(echo(ThinkingBlock("", signature=token), Text("hello")))
    record, header = drafts[1].value, drafts[2].value

    assert isinstance(record, Request)
    assert isinstance(header, Response)
    assert ("s", "t", "m") == (record.system_digest, record.tools_digest, record.messages_digest)
    assert drafts[1].response == drafts[2].response == header.origin.request


def test_without_tokens_nothing_changes() -> None:
    """Values of providers pass as they are, and a body is searched once."""
    drafts = echo(ThinkingBlock("why", signature="sig"), Text("hello"))

    assert drafts == reopened(drafts)
    assert (False, True) == (holds_tokens(b'{"signature":"sig"}'), holds_tokens(b'{"signature":"tb1.x"}'))
    assert ("", "") == (keeper().value(""), keeper().blocks([Text("hello")]))


def test_one_value_has_one_token() -> None:
    """A stream says the same value twice, and its client must not see two."""
    kept = keeper()

    assert kept.value("gAAA") == kept.value("gAAA")
    assert kept.value("gAAA") != kept.value("gBBB")


def test_tokens_hold_only_so_much_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that says one word a thousand times makes a token that is small, and large once it is opened."""
    monkeypatch.setattr(client_state, "MOST_OPENED", 500_000)
    token = keeper().blocks([ThinkingBlock("word " * 20_000)])
    message = echo(ThinkingBlock("", signature=token), Text("hello"))

    assert len(token) < 5000
    assert reopened(message * 3)
    with pytest.raises(WireError, match="more than 500000 bytes"):
        reopened(message * 9)


def test_tokens_of_one_response_are_only_so_many() -> None:
    """What they hold is looked for among its blocks; hundreds are merged, thousands would take for ever."""
    token = keeper().blocks([HIDDEN, Text("t"), ToolCall("c", "f", "{}")])
    blocks = [ThinkingBlock("", signature=token)] * 100 + [Text("t")] * 100

    assert reopened(echo(*blocks))
    with pytest.raises(WireError, match="too much"):
        reopened(echo(*blocks * 10))
