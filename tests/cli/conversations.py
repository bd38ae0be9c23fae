"""One conversation with a tool and reasoning, written by hand in every dialect."""

from __future__ import annotations

from typing import Any

SYSTEM = "Be brief."
QUESTION = "What is the weather in Oslo?"
THOUGHT = "I should look it up."
RESULT = "rain"
ANSWER = "It rains."
THANKS = "Thanks. And in Rome?"
NAME = "get_weather"
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
INPUT = {"city": "Oslo"}
OPAQUE = "b3BhcXVlIHZhbHVlIG9mIGEgdGVzdCwgbm90IG9mIGFueWJvZHk="

_FUNCTION = {"name": NAME, "description": "The weather.", "parameters": SCHEMA}
_CHAT_CALL = {"id": "call_1", "type": "function", "function": {"name": NAME, "arguments": '{"city":"Oslo"}'}}
_CHAT = {
    "model": "deepseek-v4-pro",
    "messages": [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": QUESTION},
        {"role": "assistant", "content": None, "reasoning_content": THOUGHT, "tool_calls": [_CHAT_CALL]},
        {"role": "tool", "tool_call_id": "call_1", "content": RESULT},
        {"role": "assistant", "content": ANSWER},
        {"role": "user", "content": THANKS},
    ],
    "tools": [{"type": "function", "function": _FUNCTION}],
}

BODIES: dict[str, dict[str, Any]] = {
    "openai-chat": {
        **_CHAT,
        "max_tokens": 900,
        "temperature": 0.5,
        "stop": "END",
        "stream": True,
        "tool_choice": "required",
    },
    "openai-responses": {
        "model": "gpt-5",
        "input": [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": QUESTION},
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [{"type": "summary_text", "text": THOUGHT}],
                "encrypted_content": OPAQUE,
            },
            {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": NAME, "arguments": '{"city":"Oslo"}'},
            {"type": "function_call_output", "call_id": "call_1", "output": RESULT},
            {
                "type": "message",
                "role": "assistant",
                "id": "msg_1",
                "content": [{"type": "output_text", "text": ANSWER, "annotations": []}],
            },
            {"role": "user", "content": THANKS},
        ],
        "tools": [{"type": "function", **_FUNCTION}],
        "max_output_tokens": 900,
        "stream": True,
        "tool_choice": "required",
    },
    "anthropic": {
        "model": "claude-sonnet-4-5",
        "system": SYSTEM,
        "messages": [
            {"role": "user", "content": QUESTION},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": THOUGHT, "signature": OPAQUE},
                    {"type": "tool_use", "id": "toolu_1", "name": NAME, "input": INPUT},
                ],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": RESULT}]},
            {"role": "assistant", "content": [{"type": "text", "text": ANSWER}]},
            {"role": "user", "content": THANKS},
        ],
        "tools": [{"name": NAME, "description": "The weather.", "input_schema": SCHEMA}],
        "max_tokens": 900,
        "temperature": 0.5,
        "stop_sequences": ["END"],
        "stream": True,
        "tool_choice": {"type": "any"},
    },
    "gemini": {
        "model": "gemini-3-pro-preview",
        "systemInstruction": {"parts": [{"text": SYSTEM}]},
        "contents": [
            {"role": "user", "parts": [{"text": QUESTION}]},
            {
                "role": "model",
                "parts": [
                    {"functionCall": {"id": "c1", "name": NAME, "args": INPUT}, "thoughtSignature": OPAQUE},
                ],
            },
            {
                "role": "user",
                "parts": [{"functionResponse": {"id": "c1", "name": NAME, "response": {"result": RESULT}}}],
            },
            {"role": "model", "parts": [{"text": ANSWER}]},
            {"role": "user", "parts": [{"text": THANKS}]},
        ],
        "tools": [
            {
                "functionDeclarations": [
                    {"name": NAME, "description": "The weather.", "parametersJsonSchema": SCHEMA},
                ]
            }
        ],
        "generationConfig": {"maxOutputTokens": 900, "temperature": 0.5, "stopSequences": ["END"]},
        "toolConfig": {"functionCallingConfig": {"mode": "ANY"}},
    },
    "gemini-interactions": {
        "model": "gemini-3-pro-preview",
        "system_instruction": SYSTEM,
        "input": [
            {"type": "user_input", "content": [{"type": "text", "text": QUESTION}]},
            {"type": "thought", "signature": OPAQUE, "summary": [{"type": "text", "text": THOUGHT}]},
            {"type": "function_call", "id": "c1", "name": NAME, "arguments": INPUT},
            {"type": "function_result", "call_id": "c1", "name": NAME, "result": RESULT},
            {"type": "model_output", "content": [{"type": "text", "text": ANSWER}]},
            {"type": "user_input", "content": [{"type": "text", "text": THANKS}]},
        ],
        "tools": [{"type": "function", **_FUNCTION}],
        "generation_config": {
            "max_output_tokens": 900,
            "temperature": 0.5,
            "stop_sequences": ["END"],
            "tool_choice": "any",
        },
        "stream": True,
    },
    "bedrock": {
        "modelId": "us.anthropic.claude-sonnet-4-5-v1:0",
        "system": [{"text": SYSTEM}],
        "messages": [
            {"role": "user", "content": [{"text": QUESTION}]},
            {
                "role": "assistant",
                "content": [
                    {"reasoningContent": {"reasoningText": {"text": THOUGHT, "signature": OPAQUE}}},
                    {"toolUse": {"toolUseId": "tooluse_1", "name": NAME, "input": INPUT}},
                ],
            },
            {
                "role": "user",
                "content": [{"toolResult": {"toolUseId": "tooluse_1", "content": [{"text": RESULT}]}}],
            },
            {"role": "assistant", "content": [{"text": ANSWER}]},
            {"role": "user", "content": [{"text": THANKS}]},
        ],
        "toolConfig": {
            "tools": [{"toolSpec": {"name": NAME, "description": "The weather.", "inputSchema": {"json": SCHEMA}}}],
            "toolChoice": {"any": {}},
        },
        "inferenceConfig": {"maxTokens": 900, "temperature": 0.5, "stopSequences": ["END"]},
    },
    "mistral": {
        **_CHAT,
        "model": "magistral-medium-latest",
        "messages": [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": QUESTION},
            {
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": [{"type": "text", "text": THOUGHT}]}],
                "tool_calls": [{**_CHAT_CALL, "id": "abcdefghi"}],
            },
            {"role": "tool", "tool_call_id": "abcdefghi", "name": NAME, "content": RESULT},
            {"role": "assistant", "content": ANSWER},
            {"role": "user", "content": THANKS},
        ],
        "max_tokens": 900,
        "temperature": 0.5,
        "stop": ["END"],
        "stream": True,
        "tool_choice": "any",
    },
    "ollama": {
        "model": "qwen3:4b",
        "messages": [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": QUESTION},
            {
                "role": "assistant",
                "content": "",
                "thinking": THOUGHT,
                "tool_calls": [{"function": {"name": NAME, "arguments": INPUT}}],
            },
            {"role": "tool", "tool_name": NAME, "content": RESULT},
            {"role": "assistant", "content": ANSWER},
            {"role": "user", "content": THANKS},
        ],
        "tools": [{"type": "function", "function": _FUNCTION}],
        "options": {"num_predict": 900, "temperature": 0.5, "stop": ["END"]},
        "stream": True,
    },
    "cohere": {
        "model": "command-a-reasoning-08-2025",
        "messages": [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": QUESTION},
            {
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": THOUGHT}],
                "tool_calls": [_CHAT_CALL],
            },
            {"role": "tool", "tool_call_id": "call_1", "content": RESULT},
            {"role": "assistant", "content": [{"type": "text", "text": ANSWER}]},
            {"role": "user", "content": THANKS},
        ],
        "tools": [{"type": "function", "function": _FUNCTION}],
        "max_tokens": 900,
        "temperature": 0.5,
        "stop_sequences": ["END"],
        "stream": True,
        "tool_choice": "REQUIRED",
    },
}
"""The conversation by dialect, with the parameters that each has for the same wishes."""
