"""A request of each dialect with a bit of everything: system, tools, reasoning, calls, results, media."""

from __future__ import annotations

from typing import Any

_SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}}
_FUNCTION = {"name": "f", "description": "finds", "parameters": _SCHEMA}
_CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"q":1}'}}
_PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}

REQUESTS: dict[str, dict[str, Any]] = {
    "openai-chat": {
        "model": "m",
        "tools": [{"type": "function", "function": _FUNCTION}],
        "messages": [
            {"role": "system", "content": "be good"},
            {"role": "user", "content": [{"type": "text", "text": "see"}, _PICTURE]},
            {"role": "assistant", "content": "<think>a</think>b", "reasoning_content": "why", "tool_calls": [_CALL]},
            {"role": "tool", "tool_call_id": "c1", "content": "42"},
            {"role": "assistant", "content": None, "reasoning_details": [{"type": "reasoning.text", "text": "so"}]},
        ],
        "temperature": 1,
    },
    "openai-responses": {
        "model": "m",
        "instructions": "be good",
        "tools": [{"type": "function", **_FUNCTION}],
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "see"}]},
            {
                "type": "reasoning",
                "id": "rs",
                "summary": [{"type": "summary_text", "text": "a"}],
                "encrypted_content": "E",
            },
            {"type": "function_call", "id": "fc", "call_id": "c1", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "42"},
            {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "b"}]},
        ],
    },
    "anthropic": {
        "model": "m",
        "max_tokens": 9,
        "system": [{"type": "text", "text": "be good"}],
        "tools": [{"name": "f", "description": "finds", "input_schema": _SCHEMA}],
        "messages": [
            {"role": "user", "content": "see"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "a", "signature": "S"},
                    {"type": "redacted_thinking", "data": "D"},
                    {"type": "text", "text": "b"},
                    {"type": "tool_use", "id": "c1", "name": "f", "input": {"q": 1}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "42"}]},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
                ],
            },
        ],
    },
    "gemini": {
        "systemInstruction": {"parts": [{"text": "be good"}]},
        "tools": [{"functionDeclarations": [_FUNCTION]}],
        "contents": [
            {"role": "user", "parts": [{"text": "see"}, {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}]},
            {
                "role": "model",
                "parts": [
                    {"text": "a", "thought": True},
                    {"text": "b", "thoughtSignature": "S"},
                    {"functionCall": {"id": "c1", "name": "f", "args": {"q": 1}}, "thoughtSignature": "S"},
                ],
            },
            {"role": "user", "parts": [{"functionResponse": {"id": "c1", "name": "f", "response": {"result": 42}}}]},
        ],
        "generationConfig": {"temperature": 1},
    },
    "gemini-interactions": {
        "model": "m",
        "system_instruction": "be good",
        "tools": [{"type": "function", **_FUNCTION}],
        "input": [
            {"type": "user_input", "content": [{"type": "text", "text": "see"}]},
            {"type": "thought", "signature": "S", "summary": [{"type": "text", "text": "a"}]},
            {"type": "function_call", "id": "c1", "name": "f", "arguments": {"q": 1}},
            {"type": "function_result", "call_id": "c1", "result": "42"},
            {"type": "model_output", "content": [{"type": "text", "text": "b"}]},
        ],
    },
    "bedrock": {
        "modelId": "m",
        "system": [{"text": "be good"}],
        "toolConfig": {"tools": [{"toolSpec": {"name": "f", "description": "d", "inputSchema": {"json": _SCHEMA}}}]},
        "messages": [
            {"role": "user", "content": [{"text": "see"}, {"image": {"format": "png", "source": {"bytes": "AAAA"}}}]},
            {
                "role": "assistant",
                "content": [
                    {"reasoningContent": {"reasoningText": {"text": "a", "signature": "S"}}},
                    {"reasoningContent": {"redactedContent": "D"}},
                    {"text": "b"},
                    {"toolUse": {"toolUseId": "c1", "name": "f", "input": {"q": 1}}},
                ],
            },
            {"role": "user", "content": [{"toolResult": {"toolUseId": "c1", "content": [{"text": "42"}]}}]},
        ],
    },
    "mistral": {
        "model": "m",
        "tools": [{"type": "function", "function": _FUNCTION}],
        "messages": [
            {"role": "system", "content": "be good"},
            {"role": "user", "content": [{"type": "text", "text": "see"}, _PICTURE]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "a"}], "closed": True},
                    {"type": "text", "text": "b"},
                ],
                "tool_calls": [_CALL],
            },
            {"role": "tool", "tool_call_id": "c1", "name": "f", "content": "42"},
        ],
    },
    "ollama": {
        "model": "m",
        "tools": [{"type": "function", "function": _FUNCTION}],
        "messages": [
            {"role": "system", "content": "be good"},
            {"role": "user", "content": "see", "images": ["AAAA"]},
            {
                "role": "assistant",
                "content": "b",
                "thinking": "a",
                "tool_calls": [{"id": "c1", "function": {"name": "f", "arguments": {"q": 1}}}],
            },
            {"role": "tool", "tool_name": "f", "content": "42"},
        ],
    },
    "cohere": {
        "model": "m",
        "tools": [{"type": "function", "function": _FUNCTION}],
        "messages": [
            {"role": "system", "content": "be good"},
            {"role": "user", "content": [{"type": "text", "text": "see"}, _PICTURE]},
            {
                "role": "assistant",
                "tool_plan": "p",
                "content": [{"type": "thinking", "thinking": "a"}, {"type": "text", "text": "b"}],
                "tool_calls": [_CALL],
            },
            {"role": "tool", "tool_call_id": "c1", "content": [{"type": "document", "document": {"data": "42"}}]},
        ],
    },
}
