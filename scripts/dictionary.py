"""The dictionary that payloads are compressed with, made once from the project's own examples: rules, payloads, docs.

``python -m scripts.dictionary FILE`` writes what this checkout would make of them. A dictionary that was released is
never made again: payloads that were stored with it need its bytes. Another one gets another number.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path

import msgspec

from bench.conversation import place
from thinkback.model import canonical
from thinkback.model.blocks import Carrier, Text, ThinkingBlock, ToolCall, ToolResult
from thinkback.model.commits import (
    Annotation,
    Erased,
    Message,
    Payload,
    PermissionDecision,
    Response,
    Tool,
    Tools,
    TurnEnded,
    Usage,
)
from thinkback.rules import load_rulebook
from thinkback.turn.plan import History

SIZE = 12_288
ROOT = Path(__file__).parents[1]

# What answers of providers hold besides texts, as they come in envelopes, verbatim objects and usages.
_WIRE: tuple[object, ...] = (
    {
        **{"id": "gen-", "provider": "", "model": "", "object": "chat.completion"},
        **{"created": 17, "system_fingerprint": "fp_"},
    },
    {"service_tier": "default", "refusal": None, "annotations": [], "logprobs": None, "native_finish_reason": "stop"},
    {"type": "function_call", "status": "completed", "call_id": "call_", "encrypted_content": "gAAAAA", "summary": []},
    {"type": "output_text", "annotations": [], "text": ""},
    {"type": "summary_text", "text": ""},
    {"modelVersion": "gemini-3", "responseId": "", "thoughtSignature": "", "functionCall": {"name": "", "args": {}}},
    {"type": "redacted_thinking", "data": ""},
    {"type": "tool_use", "id": "toolu_01", "name": "", "input": {}},
    {"type": "thinking", "thinking": "", "signature": "E"},
    {"type": "text", "text": ""},
    {"promptTokenCount": 1, "candidatesTokenCount": 1, "thoughtsTokenCount": 1, "totalTokenCount": 1},
    {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "service_tier": "standard"},
    {"input_tokens": 1, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 1},
    {"output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 1},
    {"prompt_tokens_details": {"cached_tokens": 0}, "completion_tokens_details": {"reasoning_tokens": 0}},
    {"prompt_tokens": 100, "completion_tokens": 200, "total_tokens": 300},
    {"created": 17, "id": "chatcmpl-", "model": "", "object": "chat.completion.chunk"},
)
_ARGUMENTS: tuple[object, ...] = (
    {"command": "git diff --stat"},
    {"query": "", "limit": 10},
    {"path": "src/", "old_str": "", "new_str": ""},
    {"file_path": "/", "content": "", "offset": 1, "limit": 100},
    {"path": "tests/test_.py", "lines": "1-80"},
)
_CODE = (
    "#!/usr/bin/env python3\\nfrom __future__ import annotations\\n\\nimport \\n\\n\\nclass \\n    def __init__(self, "
    "\\n        if not \\n            return None\\n        for \\n            self.\\n    return "
    '\\n- **\\n\\n1. **\\n```python\\n```\\n\\n## \\n\\nTraceback (most recent call last):\\n  File \\"'
)
_PLACES = (
    ("openai", "gpt-5.2"),
    ("openrouter", "deepseek/deepseek-r1"),
    ("gemini", "gemini-3-pro-preview"),
    ("anthropic", "claude-sonnet-4-5"),
    ("deepseek", "deepseek-reasoner"),
    ("kimi", "kimi-k2-thinking"),
)


def dictionary() -> bytes:
    """What is found most often stands last: it is the nearest to what is compressed."""
    end = b"".join((_hosts(), _wire(), _payloads()))
    return _words(SIZE - len(end)) + end


def _words(size: int) -> bytes:
    """The words of the documents that save most, the best of them last."""
    text = " ".join(path.read_text("utf-8") for path in sorted((ROOT / "docs").rglob("*.md")))
    counted = Counter(re.findall(r"\b[a-z]{3,}(?: [a-z]{2,})?\b", text))
    best = sorted(counted, key=lambda words: (-counted[words] * (len(words) - 2), words))
    chosen: list[str] = []
    for words in best:
        size -= len(words) + 1
        if size < 0:
            break
        chosen.append(words)
    return "".join(f"{words} " for words in reversed(chosen)).encode()


def _hosts() -> bytes:
    return b" ".join(endpoint.base_url.encode() for endpoint in list(load_rulebook().endpoints())[:24])


def _wire() -> bytes:
    """JSON source inside of JSON: with its quotes escaped."""
    texts = (json.dumps(value, separators=(",", ":")) for value in (*_WIRE, *_ARGUMENTS))
    return (_CODE + "".join(text.replace('"', '\\"') for text in texts)).encode()


def _payloads() -> bytes:
    """Each type as it is written, the commonest last."""
    carriers = (Carrier("signature", "E"),)
    usage = '{"prompt_tokens":'
    values: list[Payload] = [
        Erased("asked to", 1_767_225_600_000_000),
        Annotation("", None, reason="", tags=("",)),
        Tools((Tool("", "", '{"type":"object","properties":{"path":{"type":"string","description":"'),)),
        PermissionDecision("call_", "write_file", "allowed", "person", "writes"),
    ]
    for endpoint, model in _PLACES:
        origin = msgspec.structs.replace(place(endpoint, model).origin, account="default")
        values.append(Response(origin, id="chatcmpl-", finish="stop", content="text", envelope="{", blocks=2))
    record = place(*_PLACES[-1]).plan(History()).record()
    empty = dict.fromkeys((name for name in type(record).__struct_fields__ if "digest" in name or name == "basis"), "")
    values += [
        msgspec.structs.replace(record, target={**record.target, "account": "default"}, **empty),
        ToolResult("call_", "", "read_file"),
        ThinkingBlock("", source_field="thinking", carriers=carriers, wire='{"type":"thinking","thinking":"'),
        ToolCall("call_", "read_file", '{"path":"'),
        Usage(100, 200, 100, 0, wire=usage),
        Usage(100, 200, 100, wire=usage),
        ThinkingBlock("The user wants ", source_field="reasoning"),
        ThinkingBlock("", source_field="reasoning_content"),
        Message(""),
        Text(""),
        TurnEnded("completed"),
    ]
    return b"".join(map(canonical.encode, values))


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(dictionary())
