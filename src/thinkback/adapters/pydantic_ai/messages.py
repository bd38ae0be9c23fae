"""Messages of pydantic-ai, as it writes them in JSON, to drafts: an ordinary conversation. Pure.

A response is put back into the blocks of its provider's dialect. Where the provider is known and every part has a place
there, its origin is that provider, so that reasoning may go back to it; else nothing opaque of it ever does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import msgspec

from thinkback.formats.history import Answer, aside, placed
from thinkback.formats.parts import call, counts, items_of, message_of, result, text_of, thought
from thinkback.model import canonical
from thinkback.model.blocks import THOUGHT_FORMATS, Block, Carrier, Media, Origin, Text, ThinkingBlock
from thinkback.model.commits import Draft, Message
from thinkback.wire.openai_responses.blocks import block_of
from thinkback.wire.values import members_of, plain

NAME = "pydantic-ai"
WORDS = frozenset(
    {
        *("entry", "parent", "kind", "part_kind", "tool_kind", "timestamp", "state", "outcome", "finish_reason"),
        *("run_id", "conversation_id", "model_name", "model_id", "provider_name", "provider_url"),
    }
)
"""Members of its objects that nobody said, and of the notes that hold them."""
_USAGE = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cached": "cache_read_tokens",
    "cache_write": "cache_write_tokens",
    "reasoning": "reasoning_tokens",
}


class _Api(NamedTuple):
    """The dialect of a provider's blocks, and how its thoughts are written."""

    dialect: str
    field: str
    redacted: tuple[str, str] = ("", "")
    """The id of a thinking part whose signature is all of it, and the name of such a block."""
    follows: bool = False
    """Whether a thought's signature belongs to the part behind it."""


_APIS = {
    "anthropic": _Api("anthropic", "thinking", ("redacted_thinking", "redacted_thinking")),
    "bedrock": _Api("bedrock", "reasoningText", ("redacted_content", "redactedContent")),
    "google": _Api("gemini", "thought", follows=True),
    "mistral": _Api("mistral", "thinking"),
    "cohere": _Api("cohere", "thinking"),
}
_ITEMS = _Api("openai-responses", "reasoning")
_CHAT = _Api("openai-chat", "reasoning_content")
_ITEM_IDS = ("rs_", "msg_", "fc_")
_SIGNATURE = "thought_signature"


def drafts_of(message: Mapping[str, Any], entry: str, told: str, place: Origin | None) -> list[Draft]:
    """What ``message`` says. ``told`` are the instructions in force, ``place`` is the provider's address where that is
    known: the rest of the origin is in the message.
    """
    if message.get("kind") == "response":
        return _response(message, entry, place)
    drafts = [Draft("system", Message(text))] if (text := plain(message.get("instructions"))) not in ("", told) else []
    for part in items_of(message.get("parts")):
        drafts += _said(members_of(part))
    return drafts


def _said(part: dict[str, Any]) -> Iterator[Draft]:
    kind, content = plain(part.get("part_kind")), part.get("content")
    match kind:
        case "system-prompt":
            yield Draft("system", Message(text_of(content)))
        case "user-prompt":
            yield Draft("user", _prompt(content))
        case "tool-return":
            failed = plain(part.get("outcome")) not in ("", "success")
            yield result(part.get("tool_call_id"), content, part.get("tool_name"), is_error=failed)
        case "retry-prompt" if part.get("tool_name"):
            words = content if isinstance(content, str) else canonical.source(content)
            yield result(part.get("tool_call_id"), words, part.get("tool_name"), is_error=True)
        case "retry-prompt" | "retry-feedback":
            yield Draft("user", Message(content if isinstance(content, str) else canonical.source(content)))
        case _:
            yield aside(f"{NAME} {kind or 'part'}", text_of(content))


def _prompt(content: object) -> Message:
    if isinstance(content, str):
        return Message(content)
    return message_of([found for each in items_of(content) if (found := _content(each)) is not None])


def _content(item: object) -> Text | Media | None:
    if isinstance(item, str):
        return Text(item)
    fields = members_of(item)
    media_type, name = plain(fields.get("media_type")), plain(fields.get("identifier"))
    if fields.get("kind") == "binary":
        data = plain(fields.get("data")).replace("-", "+").replace("_", "/")
        return Media(media_type or "application/*", data + "=" * (-len(data) % 4))
    if url := plain(fields.get("url")):
        family = plain(fields.get("kind")).partition("-")[0]
        guess = "application/*" if family == "document" else f"{family}/*"
        return Media(media_type or guess, url=url, name=name)
    text = fields.get("content")
    return Text(text) if isinstance(text, str) else None


# -- responses ---------------------------------------------------------------------------------------------------------


def _response(message: Mapping[str, Any], entry: str, place: Origin | None) -> list[Draft]:
    parts = [members_of(part) for part in items_of(message.get("parts"))]
    api = _api_of(message, parts)
    blocks, is_whole = _items(parts) if api is _ITEMS else _blocks(parts, api)
    given = members_of(message.get("usage"))
    reasoning = given.get("output_reasoning_tokens") or members_of(given.get("details")).get("reasoning_tokens")
    usage = {**given, "reasoning_tokens": reasoning}
    state = plain(message.get("state"))
    answer = Answer(
        blocks,
        model=plain(message.get("model_name")),
        id=plain(message.get("provider_response_id")),
        finish=plain(message.get("finish_reason")),
        usage=counts(usage, **_USAGE),
        error="" if state in ("", "complete") else f"it is {state}",
        dialect=api.dialect,
    )
    vouched = msgspec.structs.replace(place, dialect=api.dialect) if place is not None and is_whole else None
    return [placed(draft, NAME, vouched) for draft in answer.drafts(NAME, "", entry)]


def _api_of(message: Mapping[str, Any], parts: Sequence[dict[str, Any]]) -> _Api:
    provider = plain(message.get("provider_name"))
    found = next((api for name, api in _APIS.items() if provider.startswith(name)), None)
    if found is not None:
        return found
    if any(plain(part.get("id")).startswith(_ITEM_IDS) for part in parts):
        return _ITEMS
    return _CHAT


def _blocks(parts: Sequence[dict[str, Any]], api: _Api) -> tuple[list[Block], bool]:
    """The blocks of ``parts``, and whether the provider would find in them all that it gave."""
    blocks: list[Block] = []
    is_whole, pending = True, ""
    for part in parts:
        details = members_of(part.get("provider_details"))
        signature = plain(part.get("signature"))
        own = pending or plain(details.get(_SIGNATURE))
        carriers = (Carrier("thought_signature", own),) if own else ()
        pending = ""
        match plain(part.get("part_kind")):
            case "thinking" if signature and part.get("id") == api.redacted[0]:
                redacted = (Carrier("redacted", signature),)
                blocks.append(ThinkingBlock("", source_field=api.redacted[1], kind="none", carriers=redacted))
            case "thinking":
                named = plain(part.get("id"))
                field = named if named in THOUGHT_FORMATS else api.field
                if api.follows:
                    pending, signature = signature, ""
                blocks.append(
                    msgspec.structs.replace(thought(part.get("content"), field, signature), carriers=carriers)
                )
                is_whole = is_whole and not details.keys() - {_SIGNATURE}
            case "text":
                blocks.append(Text(plain(part.get("content")), carriers=carriers))
            case "tool-call":
                made = call(part.get("tool_call_id"), part.get("tool_name"), part.get("args"))
                blocks.append(msgspec.structs.replace(made, carriers=carriers))
            case kind:
                is_whole = False
                blocks += _foreign(kind, part)
    return blocks, is_whole and not pending


def _foreign(kind: str, part: dict[str, Any]) -> Iterator[Block]:
    """A part that is no text, thought or call of ours."""
    content = members_of(part.get("content"))
    if kind == "file" and (found := _content({**content, "kind": "binary"})) is not None:
        yield found
    elif text := text_of(part.get("content")):
        yield Text(text)


def _items(parts: Sequence[dict[str, Any]]) -> tuple[list[Block], bool]:
    """The same as items of the Responses API."""
    blocks: list[Block] = []
    is_whole = True

    def item(part: dict[str, Any]) -> str:
        return plain(part.get("id")) if part.get("part_kind") in ("thinking", "text") else ""

    for (kind, id), group in groupby(parts, lambda part: (plain(part.get("part_kind")), item(part))):
        held = list(group)
        if kind == "thinking":
            blocks.append(_item(_reasoning(id, held)))
        elif kind == "text" and id:
            texts = [
                {"type": "output_text", "annotations": [], "logprobs": [], "text": plain(part.get("content"))}
                for part in held
            ]
            phase = {"phase": said} if (said := _detail(held, "phase")) else {}
            head = {"type": "message", "id": id, "status": "completed", "role": "assistant"}
            blocks.append(_item({**head, **phase, "content": texts}))
        elif kind == "tool-call":
            blocks += (_item(_call(part)) for part in held)
        else:
            is_whole = is_whole and kind == "text"
            for part in held:
                blocks += [Text(plain(part.get("content")))] if kind == "text" else _foreign(kind, part)
    return blocks, is_whole


def _reasoning(id: str, parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    texts = [plain(part.get("content")) for part in parts]
    encrypted = next((value for part in parts if (value := plain(part.get("signature")))), "")
    raw = next((items_of(members_of(part.get("provider_details")).get("raw_content")) for part in parts), [])
    return {
        "type": "reasoning",
        **({"id": id} if id else {}),
        "content": [{"type": "reasoning_text", "text": plain(text)} for text in raw],
        "summary": [{"type": "summary_text", "text": text} for text in texts if text],
        **({"encrypted_content": encrypted} if encrypted else {}),
    }


def _call(part: dict[str, Any]) -> dict[str, Any]:
    made = call(part.get("tool_call_id"), part.get("tool_name"), part.get("args"))
    id = {"id": own} if (own := plain(part.get("id"))) else {}
    head = {"type": "function_call", **id, "status": "completed"}
    return {**head, "call_id": made.id, "name": made.name, "arguments": made.arguments}


def _detail(parts: Sequence[dict[str, Any]], name: str) -> str:
    return next((said for part in parts if (said := plain(members_of(part.get("provider_details")).get(name)))), "")


def _item(fields: dict[str, Any]) -> Block:
    return block_of(fields, canonical.source(fields))
