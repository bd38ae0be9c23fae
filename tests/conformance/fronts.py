"""What clients of the four front dialects send: one tool loop in its second turn, with an image and every wish."""

from __future__ import annotations

import json
from typing import Any

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SYSTEM, QUESTION, RESULT, ANSWER = "Be brief.", "What is the weather in Oslo?", "rain", "It rains in Oslo."
AGAIN, ARGUMENTS, MORE = "And in Rome?", {"city": "Oslo"}, {"city": "Rome"}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
ABOUT = "The weather of a city"
FORM = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
}
USER = "user-7"


def _chat_call(id: str, arguments: dict[str, str]) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": "weather", "arguments": json.dumps(arguments)}}


def _called(id: str, arguments: dict[str, str]) -> dict[str, Any]:
    return {"type": "function_call", "call_id": id, "name": "weather", "arguments": json.dumps(arguments)}


def _used(id: str, arguments: dict[str, str]) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": "weather", "input": arguments}


def _gave(id: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id, "content": [{"type": "text", "text": RESULT}]}


FRONTS: dict[str, dict[str, Any]] = {
    "openai-chat": {
        "model": "any",
        "messages": [
            {"role": "developer", "content": SYSTEM},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": QUESTION},
                    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}", "detail": "low"}},
                ],
            },
            {"role": "assistant", "content": None, "tool_calls": [_chat_call("call_1", ARGUMENTS)], "refusal": None},
            {"role": "tool", "tool_call_id": "call_1", "content": RESULT},
            {"role": "assistant", "content": ANSWER},
            {"role": "user", "content": AGAIN, "name": "somebody"},
            {"role": "assistant", "content": "", "tool_calls": [_chat_call("call_2", MORE)]},
            {"role": "tool", "tool_call_id": "call_2", "content": [{"type": "text", "text": RESULT}]},
        ],
        "tools": [
            {
                "type": "function",
                "function": {"name": "weather", "description": ABOUT, "parameters": SCHEMA, "strict": True},
            }
        ],
        "tool_choice": "auto",
        "parallel_tool_calls": False,
        "max_completion_tokens": 3000,
        "temperature": 0.5,
        "top_p": 0.9,
        "seed": 7,
        "stop": "END",
        "presence_penalty": 0.1,
        "frequency_penalty": 0,
        "logit_bias": {"50256": -100},
        "n": 1,
        "user": USER,
        "reasoning_effort": "high",
        "verbosity": "low",
        "service_tier": "auto",
        "store": False,
        "stream": False,
        "response_format": {"type": "json_schema", "json_schema": {"name": "form", "schema": FORM, "strict": True}},
    },
    "openai-responses": {
        "model": "any",
        "instructions": SYSTEM,
        "input": [
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": QUESTION},
                    {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}", "detail": "auto"},
                ],
            },
            _called("call_1", ARGUMENTS),
            {"type": "function_call_output", "call_id": "call_1", "output": RESULT},
            {
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": ANSWER, "annotations": []}],
            },
            {"type": "message", "role": "user", "content": AGAIN},
            _called("call_2", MORE),
            {
                "type": "function_call_output",
                "call_id": "call_2",
                "output": [{"type": "input_text", "text": RESULT}],
            },
        ],
        "tools": [{"type": "function", "name": "weather", "description": ABOUT, "parameters": SCHEMA, "strict": False}],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "max_output_tokens": 3000,
        "temperature": 0.5,
        "reasoning": {"effort": "medium", "summary": "auto"},
        "text": {"format": {"type": "json_schema", "name": "form", "schema": FORM, "strict": True}, "verbosity": "low"},
        "include": ["reasoning.encrypted_content"],
        "metadata": {"topic": "weather"},
        "safety_identifier": USER,
        "store": False,
        "stream": False,
        "truncation": "disabled",
    },
    "anthropic": {
        "model": "any",
        "max_tokens": 3000,
        "system": [{"type": "text", "text": SYSTEM, "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": QUESTION},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
                ],
            },
            {"role": "assistant", "content": [{"type": "text", "text": "I look."}, _used("toolu_1", ARGUMENTS)]},
            {"role": "user", "content": [_gave("toolu_1")]},
            {"role": "assistant", "content": ANSWER},
            {"role": "user", "content": [{"type": "text", "text": AGAIN, "cache_control": {"type": "ephemeral"}}]},
            {"role": "assistant", "content": [_used("toolu_2", MORE)]},
            {"role": "user", "content": [{**_gave("toolu_2"), "is_error": False}]},
        ],
        "tools": [
            {
                "name": "weather",
                "description": ABOUT,
                "input_schema": SCHEMA,
                "cache_control": {"type": "ephemeral"},
            }
        ],
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
        "temperature": 1,
        "top_k": 40,
        "stop_sequences": ["END"],
        "thinking": {"type": "enabled", "budget_tokens": 2000},
        "output_config": {"format": {"type": "json_schema", "schema": FORM}},
        "metadata": {"user_id": USER},
        "stream": False,
    },
    "gemini": {
        "system_instruction": {"parts": [{"text": SYSTEM}]},
        "contents": [
            {
                "role": "user",
                "parts": [{"text": QUESTION}, {"inlineData": {"mimeType": "image/png", "data": PIXEL}}],
            },
            {"role": "model", "parts": [{"functionCall": {"name": "weather", "args": ARGUMENTS}}]},
            {
                "role": "user",
                "parts": [{"functionResponse": {"name": "weather", "response": {"result": RESULT}}}],
            },
            {"role": "model", "parts": [{"text": ANSWER}]},
            {"role": "user", "parts": [{"text": AGAIN}]},
            {"role": "model", "parts": [{"function_call": {"name": "weather", "args": MORE}}]},
            {
                "role": "user",
                "parts": [{"function_response": {"name": "weather", "response": {"temperature": 7}}}],
            },
        ],
        "tools": [
            {
                "function_declarations": [
                    {
                        "name": "weather",
                        "description": ABOUT,
                        "parameters": {
                            "type": "OBJECT",
                            "properties": {"city": {"type": "STRING"}},
                            "required": ["city"],
                        },
                    }
                ]
            }
        ],
        "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}},
        "safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}],
        "generationConfig": {
            "candidateCount": 1,
            "maxOutputTokens": 3000,
            "temperature": 0.5,
            "topP": 0.9,
            "topK": 40,
            "seed": 7,
            "stopSequences": ["END"],
            "responseMimeType": "application/json",
            "responseSchema": {
                "type": "OBJECT",
                "properties": {"answer": {"type": "STRING", "nullable": True}},
                "required": ["answer"],
            },
            "thinkingConfig": {"thinkingLevel": "HIGH", "includeThoughts": True},
        },
    },
}
"""By dialect, without the reasoning that the client forgot. Gemini's has no model: the address names it."""
