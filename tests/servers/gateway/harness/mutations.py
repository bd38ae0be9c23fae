"""Requests as nobody should send them: bodies of real clients, changed in many places at once by a seed."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

from tests.conformance.fronts import FRONTS, PIXEL

# Values that have broken programs.
NASTY: tuple[Any, ...] = (
    None, True, False, 0, -1, 1.5, 1e308, 2**63, -(2**70), 10**400, "", " ", "\ud800", "a\udc00b", "\x00", "\r\nx: y",
    "\u202e", "tb1.", "tb1.AAAA", "dGIxLkFBQUE=", "a" * 5000, "../../x?y#z", "data:image/png;base64,!!", "data:,",
    "data:;base64,", f"data:image/png;base64,{PIXEL}", "http://[::1", "null", "{}", "[", '{"a": NaN}',
    "<think>", "</think>",
    [], {}, [[]], [None], [{}], {"": None}, {"type": None}, {"type": "x"}, {"type": "text"}, {"\ud800": "\udfff"},
    {"role": "user"}, {"role": []}, {"text": {}}, {"type": "thinking"}, {"type": "redacted_thinking", "data": 1},
    {"type": "thinking", "thinking": "a", "signature": "tb1.AAAA"}, {"type": "reasoning", "summary": None},
    {"type": "reasoning", "encrypted_content": "tb1.AAAA", "summary": [{"text": 1}]}, {"thought": True, "text": "a"},
    {"thoughtSignature": "dGIxLkFBQUE=", "functionCall": {"name": 1, "args": "a"}}, {"type": "item_reference", "id": 1},
    {"type": "tool_result", "tool_use_id": None, "content": [None]},
    {"functionResponse": None}, {"inlineData": {"data": "!"}},
    {"type": "function_call", "call_id": None, "name": None, "arguments": None}, {"type": "custom_tool_call_output"},
    {"type": "image", "source": {"type": "url", "url": "http://127.0.0.1/"}}, {"type": "document", "source": {}},
)  # fmt: skip
# Keys that mean something somewhere.
KEYS = (  # noqa: SIM905
    "reasoning_content reasoning reasoning_details thinking signature redacted_thinking encrypted_content thought "
    "thoughtSignature thought_signature extra_content cache_control metadata user safety_identifier stream model id "
    "stream_options previous_response_id tool_calls function_call tool_call_id name content text type role parts input "
    "output arguments status phase include conversation prompt background truncation response_format generationConfig "
    "labels cachedContent system developer n logprobs audio modalities prediction web_search_options functions"
).split()
DEEP = 100


def mutated(front: str, seed: int, most: int = 6) -> dict[str, Any]:
    """The body of a client of ``front``, changed in up to ``most`` places."""
    chance = random.Random(seed)
    body: Any = copy.deepcopy(FRONTS[front])
    for _ in range(chance.randint(1, most)):
        places = list(_places(body))
        holder, key = chance.choice(places)
        _change(holder, key, chance)
    return dict(body)


def written(body: Any, seed: int) -> bytes:
    """``body`` as JSON: halves of characters escaped, and now and then a key twice or numbers nobody has."""
    chance = random.Random(seed)
    text = json.dumps(body, ensure_ascii=True, indent=chance.choice((None, None, 2)))
    match chance.randrange(12):
        case 0:
            return text.replace('"role":', f'"role": {json.dumps(chance.choice(NASTY))}, "role":', 1).encode()
        case 1:
            return text.replace("{", '{"model": 1, ', 1).encode()
        case 2:
            return text.replace("3000", chance.choice(("1e999", "-0", "0.1e-400", "9" * 5000, "NaN")), 1).encode()
        case 3:
            at = chance.randrange(len(text))
            return text[:at].encode() + chance.randbytes(3) + text[at:].encode()
        case 4:
            return text[: chance.randrange(len(text))].encode()
        case _:
            return text.encode()


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """(holder, key) of everything in ``value``."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, held in list(inner):
        yield value, key
        if isinstance(held, dict | list):
            yield from _places(held)


def _change(holder: Any, key: Any, chance: random.Random) -> None:
    held = holder[key]
    match chance.randrange(9):
        case 0 | 1 | 2:
            holder[key] = copy.deepcopy(chance.choice(NASTY))
        case 3:
            del holder[key]
        case 4 if isinstance(holder, list):
            holder[key:key] = [copy.deepcopy(held)] * chance.randint(1, 3)
        case 4:
            holder[chance.choice(KEYS)] = held
        case 5:
            other = chance.choice(list(_places(FRONTS[chance.choice(list(FRONTS))])))
            holder[key] = copy.deepcopy(other[0][other[1]])
        case 6:
            for _ in range(chance.choice((1, 2, DEEP))):
                held = chance.choice(([held], {chance.choice(KEYS): held}))
            holder[key] = held
        case 7 if isinstance(holder, list):
            chance.shuffle(holder)
        case 8 if isinstance(held, dict):
            held[chance.choice(KEYS)] = copy.deepcopy(chance.choice(NASTY))
        case _:
            holder[key] = (
                str(held) if not isinstance(held, str) else held + chance.choice(("\ud800", "\x00", "a" * 3000))
            )
