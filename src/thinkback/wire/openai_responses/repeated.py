"""What a response repeats of its request, in full: the specification wants every member, also where none was sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from thinkback.model import canonical

# What stands where the request said nothing.
_USUAL: dict[str, object] = {
    "background": False,
    "frequency_penalty": 0.0,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "presence_penalty": 0.0,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": {"effort": None, "summary": None},
    "safety_identifier": None,
    "service_tier": "default",
    "store": True,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
    "user": None,
}
_FUNCTION = {"description": None, "parameters": None, "strict": None}
_SCHEMA = {"description": None, "strict": False}


def repeated(asked: Mapping[str, object]) -> bytes:
    """The members that a response repeats of the request ``asked``, without the braces around them."""
    told = {name: asked[name] if asked.get(name) is not None else usual for name, usual in _USUAL.items()}
    told["reasoning"] = _completed(told["reasoning"], {"effort": None, "summary": None})
    text = told["text"] = _completed(told["text"], {"format": {"type": "text"}})
    if isinstance(text, dict):
        text["format"] = _of_type("json_schema", text["format"], _SCHEMA)
    if isinstance(told["tools"], list):
        told["tools"] = [_of_type("function", tool, _FUNCTION) for tool in told["tools"]]
    return canonical.raw(canonical.source(told))[1:-1]


def _of_type(kind: str, value: object, usual: Mapping[str, object]) -> object:
    """``value`` with the members that it must have, if it is an object of that type."""
    return _completed(value, usual) if isinstance(value, dict) and value.get("type") == kind else value


def _completed(value: Any, usual: Mapping[str, object]) -> Any:
    return {**usual, **value} if isinstance(value, dict) else value
