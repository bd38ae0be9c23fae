"""The public types of each front's dialect, strictly: what a response must have, and what it may."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from functools import cache
from typing import Any, Never, get_args

import anthropic.types
import google.genai.types
import openai.types.chat
import openai.types.responses
import openresponses_types.types
from pydantic import BaseModel, TypeAdapter, ValidationError

# What clients of chat completions read reasoning and images from, which the vendor has no word for; and what the
# specification leaves to those who have it.
_BESIDE = frozenset({"images", "reasoning", "reasoning_content", "reasoning_details"})
_BEYOND = "custom_tool_call"
_UNTYPED = (b"[DONE]", b'{"type": "ping"}', b'{"type":"ping"}')

_WHOLE: dict[str, Any] = {
    "openai-chat": openai.types.chat.ChatCompletion,
    "openai-responses": openai.types.responses.Response,
    "anthropic": anthropic.types.Message,
    "gemini": google.genai.types.GenerateContentResponse,
}
_EVENT: dict[str, Any] = {
    "openai-chat": openai.types.chat.ChatCompletionChunk,
    "gemini": google.genai.types.GenerateContentResponse,
}
# Those whose events say which they are.
_EVENTS: dict[str, Any] = {
    "openai-responses": openai.types.responses.ResponseStreamEvent,
    "anthropic": anthropic.types.RawMessageStreamEvent,
}


def faults(front: str, document: bytes, *, own: bool = False) -> list[str]:
    """What a whole response has against its dialect's types; its provider's ``own`` may have more than those name."""
    found = list(_against(_WHOLE[front], document, own))
    if front == "openai-responses":
        found += _against(openresponses_types.types.ResponseResource, _without_schema(document), own)
    return found


def faults_of_stream(front: str, stream: bytes, *, own: bool = False) -> list[str]:
    """What the events of a stream have against their types; as ``faults``."""
    found: list[str] = []
    for line in stream.splitlines():
        payload = line.removeprefix(b"data:").strip()
        if not line.startswith(b"data:") or payload in _UNTYPED:
            continue
        if front in _EVENT:
            found += _against(_EVENT[front], payload, own)
            continue
        kind = json.loads(payload)["type"]
        found += _against(_by_name(front).get(kind, Never), payload, own)
        if front == "openai-responses" and not kind.startswith(f"response.{_BEYOND}"):
            found += _against(_specified().get(kind, Never), _without_schema(payload), own)
    return found


def _without_schema(payload: bytes) -> bytes:
    """The package, which a program made from the specification, takes no schema of an answer but null."""
    document = json.loads(payload)
    match document.get("response", document):
        case {"text": {"format": {"schema": _} as format}}:
            format["schema"] = None
    return json.dumps(document).encode()


def _against(type: Any, payload: bytes, own: bool) -> Iterator[str]:
    try:
        value = _adapter(type).validate_json(payload, strict=True)
    except ValidationError as error:
        for fault in error.errors():
            if own and fault["type"] == "extra_forbidden":
                continue
            yield f"{type.__name__}: {'.'.join(map(str, fault['loc']))}: {fault['msg']}"
        return
    if not own:
        known = _BESIDE | _names()
        yield from (f"{path}: unknown" for path in _unknown(value, "") if path.rpartition(".")[2] not in known)


def _unknown(value: object, path: str) -> Iterator[str]:
    """The paths of members that ``value`` has and its type does not."""
    if isinstance(value, BaseModel):
        for name in value.model_extra or ():
            yield f"{path}.{name}"
        for name in value.model_fields_set & type(value).model_fields.keys():
            yield from _unknown(getattr(value, name), f"{path}.{name}")
    elif isinstance(value, list):
        for at, each in enumerate(value):
            yield from _unknown(each, f"{path}.{at}")


@cache
def _adapter(type: Any) -> TypeAdapter[Any]:
    return TypeAdapter(type)


@cache
def _names() -> frozenset[str]:
    """Every member that the specification names, which the openai package may not."""
    found: set[str] = set()
    for _, each in inspect.getmembers(openresponses_types.types, inspect.isclass):
        found.update(getattr(each, "model_fields", ()))
    return frozenset(found)


@cache
def _by_name(front: str) -> dict[str, Any]:
    """The vendor's type of each event."""
    union = _EVENTS[front]
    events = get_args(get_args(union)[0])
    return {get_args(each.model_fields["type"].annotation)[0]: each for each in events}


@cache
def _specified() -> dict[str, Any]:
    """The specification's type of each event."""
    found: list[tuple[str, Any]] = inspect.getmembers(openresponses_types.types, inspect.isclass)
    events = [each for name, each in found if name.endswith("StreamingEvent")]
    return {next(iter(each.model_fields["type"].annotation)).value: each for each in events}
