"""Items of openai-agents: input items of the Responses API, to drafts, and back where nobody noted them. Pure.

What its models for chat completions made is written in such items too, with an id that is none; it becomes what it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from itertools import groupby
from typing import Any

import msgspec

from thinkback.formats.history import Answer, placed
from thinkback.formats.parts import call, items_of, text_of, thought
from thinkback.log.lines import open_calls
from thinkback.model import canonical
from thinkback.model.blocks import Block, Media, Origin, Text, ThinkingBlock, ToolCall, ToolResult, Unknown
from thinkback.model.commits import Commit, Draft, Message, Response, TurnEnded, surviving
from thinkback.wire import registry
from thinkback.wire.openai_responses.blocks import wire_object
from thinkback.wire.openai_responses.content import NAME as RESPONSES
from thinkback.wire.values import members_of, plain

NAME = "openai-agents"
WORDS = frozenset({"type", "role", "status", "phase"})

_NO_ID = "__fake_id__"
_ABOUT = "provider_data"
_MODEL = "model"


def drafts_of(items: Sequence[Any], ids: Callable[[], str], model: str, vouched: Origin | None) -> list[Draft]:
    """What ``items`` say; responses are said to be of ``model`` where they do not name theirs, and of the place
    ``vouched`` where that speaks their dialect. Raises ``WireError`` for what is no item.
    """
    drafts: list[Draft] = []
    for key, group in groupby(items, _made_by):
        run = list(group)
        if key is None:
            read = registry.dialect(RESPONSES).read_messages(run, ids, Origin(RESPONSES, "", model, model))
            drafts += (placed(draft, NAME, vouched) for draft in read)
        else:
            drafts += (placed(draft, NAME, vouched) for draft in _chat(run, ids(), model))
    last = next((draft for draft in reversed(drafts) if draft.kind in ("response", "user", "tool_result")), None)
    if last is not None and last.kind == "response" and not any(_calls(drafts, last.response)):
        drafts.append(Draft("turn_ended", TurnEnded("completed", "stored")))
    return drafts


def _calls(drafts: Iterable[Draft], response: str) -> Iterator[bool]:
    return (True for draft in drafts if draft.kind == "tool_call" and draft.response == response)


def _made_by(item: Any) -> str | None:
    """The response of chat completions that an item is of; ``None`` for any other item."""
    fields = members_of(item)
    about = members_of(fields.get(_ABOUT))
    made = fields.get("role") == "assistant" or plain(fields.get("type")) in ("reasoning", "function_call")
    if not made or not (fields.get("id") == _NO_ID or about.get(_MODEL)):
        return None
    return plain(about.get("response_id"))


def _chat(items: Sequence[Any], id: str, model: str) -> list[Draft]:
    """The response that ``items`` are of."""
    about = members_of(members_of(items[0]).get(_ABOUT))
    answer = Answer(
        [block for item in items for block in _blocks(members_of(item))],
        model=plain(about.get(_MODEL)) or model,
        id=plain(about.get("response_id")),
        dialect=registry.CHAT,
    )
    return [draft for draft in answer.drafts(NAME, id, "") if draft.kind != "turn_ended"]


def _blocks(item: dict[str, Any]) -> Iterator[Block]:
    match item.get("type"):
        case "reasoning":
            raw, summary = text_of(item.get("content")), text_of(item.get("summary"))
            yield thought(raw or summary, "reasoning" if raw else "reasoning_content")
        case "function_call":
            yield call(item.get("call_id"), item.get("name"), item.get("arguments"))
        case _:
            for part in items_of(item.get("content")):
                fields = members_of(part)
                yield Text(plain(fields.get("refusal")), "refusal") if "refusal" in fields else Text(text_of([part]))


# -- what nobody noted -------------------------------------------------------------------------------------------------


def items_said(commits: Sequence[Commit]) -> Iterator[tuple[Commit, list[dict[str, Any]]]]:
    """The items of what was said elsewhere (in the chat, say), with the commit that each message begins with.

    Reasoning of other dialects is no item; a call that waits for its result is none either.
    """
    waiting = {each.call.id for each in open_calls(commits)}
    dialects: dict[str, str] = {}
    for commit in commits:
        value = surviving(commit.value)
        if commit.edit:
            continue
        if isinstance(value, Response):
            dialects[commit.response] = value.origin.dialect if value.complete else ""
            yield commit, []
            continue
        if isinstance(value, Message) and commit.kind == "user":
            yield commit, [_message(value)]
        elif isinstance(value, ToolResult):
            yield commit, [{"type": "function_call_output", "call_id": value.id, "output": value.content}]
        elif isinstance(value, Text | ThinkingBlock | ToolCall) and commit.response:
            dialect = dialects.get(commit.response, "")
            found = _item(value, is_own=dialect == RESPONSES) if dialect else None
            if found is not None and not (isinstance(value, ToolCall) and value.id in waiting):
                yield commit, [found]


def _message(message: Message) -> dict[str, Any]:
    if message.wire and message.dialect == RESPONSES:
        said: dict[str, Any] = canonical.decode(message.wire)
        return said
    if not any(isinstance(part, Media | Unknown) for part in message.parts):
        return {"role": "user", "content": message.text}
    own = (part for part in message.parts if isinstance(part, Text | Media) and not isinstance(part, Unknown))
    return {"role": "user", "content": [members_of(canonical.decode(_part(part))) for part in own]}


def _part(part: Text | Media) -> bytes:
    from thinkback.wire.openai_responses.content import part as written

    return written(msgspec.structs.replace(part, wire=""))


def _item(block: Text | ThinkingBlock | ToolCall, *, is_own: bool) -> dict[str, Any] | None:
    if is_own:
        item: dict[str, Any] = canonical.decode(wire_object(block))
        return item
    if isinstance(block, ThinkingBlock):
        return None
    if isinstance(block, Text):
        return {"role": "assistant", "content": block.text} if block.text else None
    return {"type": "function_call", "call_id": block.id, "name": block.name, "arguments": block.arguments or "{}"}


# -- for another model -------------------------------------------------------------------------------------------------


def key_of(item: Mapping[str, Any]) -> str:
    """What the reasoning of an item is known by."""
    id = plain(item.get("id"))
    return id if id.startswith("rs_") else plain(item.get("encrypted_content")) or id


def without_reasoning(items: Sequence[Any], foreign: Set[str]) -> list[Any]:
    """``items`` without the reasoning whose keys are ``foreign``, and without the ids that tie its neighbours to it."""
    kept: list[Any] = []
    ties = False
    for item in items:
        fields = members_of(item)
        if fields.get("type") == "reasoning":
            ties = key_of(fields) in foreign
            if ties:
                continue
        elif fields.get("role") in ("user", "system", "developer") or plain(fields.get("type")).endswith("_output"):
            ties = False
        elif ties and "id" in fields:
            item = {name: value for name, value in fields.items() if name != "id"}
        kept.append(item)
    return kept
