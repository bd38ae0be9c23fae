"""The limit of every reader: a plain split of the body into its frames, and a bare typed decode of each.

Nothing is done with what comes out: no deltas, no blocks, no checks but those of JSON. The types have what a reader
needs of the events that come in numbers; of the others as much as they share with those. Both sides of every ratio
have framing in them: here a ``split`` of the whole body (for the binary event stream: a walk along the lengths,
without checksums), there the real one, piece by piece.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any
from zlib import crc32

import msgspec


class _Function(msgspec.Struct, gc=False):
    name: str | None = None
    arguments: str | None = None


class _Call(msgspec.Struct, gc=False):
    function: _Function
    id: str | None = None


class _ChatDelta(msgspec.Struct, gc=False):
    content: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[_Call] | None = None


class _ChatChoice(msgspec.Struct, gc=False):
    delta: _ChatDelta
    finish_reason: str | None = None


class _Chat(msgspec.Struct, gc=False):
    choices: list[_ChatChoice]
    id: str = ""
    model: str = ""
    usage: msgspec.Raw = msgspec.Raw()


class _Responses(msgspec.Struct, gc=False):
    type: str
    delta: str | None = None
    output_index: int = 0
    item: msgspec.Raw = msgspec.Raw()
    response: msgspec.Raw = msgspec.Raw()


class _AnthropicDelta(msgspec.Struct, gc=False):
    type: str | None = None
    thinking: str | None = None
    text: str | None = None
    signature: str | None = None
    partial_json: str | None = None
    stop_reason: str | None = None


class _Anthropic(msgspec.Struct, gc=False):
    type: str
    index: int = 0
    delta: _AnthropicDelta | None = None
    content_block: msgspec.Raw = msgspec.Raw()
    message: msgspec.Raw = msgspec.Raw()
    usage: msgspec.Raw = msgspec.Raw()


class _GeminiPart(msgspec.Struct, gc=False):
    text: str | None = None
    thought: bool = False
    functionCall: msgspec.Raw = msgspec.Raw()
    thoughtSignature: str | None = None


class _GeminiContent(msgspec.Struct, gc=False):
    parts: list[_GeminiPart] = []


class _GeminiCandidate(msgspec.Struct, gc=False):
    content: _GeminiContent
    finishReason: str | None = None


class _Gemini(msgspec.Struct, gc=False):
    candidates: list[_GeminiCandidate]
    usageMetadata: msgspec.Raw = msgspec.Raw()
    modelVersion: str = ""
    responseId: str = ""


class _Words(msgspec.Struct, gc=False):
    text: str = ""


class _InteractionDelta(msgspec.Struct, gc=False):
    type: str
    text: str | None = None
    arguments: Any = None
    signature: str | None = None
    content: _Words | None = None


class _Interaction(msgspec.Struct, gc=False):
    event_type: str
    index: int = 0
    delta: _InteractionDelta | None = None
    step: msgspec.Raw = msgspec.Raw()
    interaction: msgspec.Raw = msgspec.Raw()


class _BedrockReasoning(msgspec.Struct, gc=False):
    text: str | None = None
    signature: str | None = None


class _BedrockInput(msgspec.Struct, gc=False):
    input: str = ""


class _BedrockDelta(msgspec.Struct, gc=False):
    text: str | None = None
    reasoningContent: _BedrockReasoning | None = None
    toolUse: _BedrockInput | None = None


class _Bedrock(msgspec.Struct, gc=False):
    contentBlockIndex: int = 0
    delta: _BedrockDelta | None = None
    start: msgspec.Raw = msgspec.Raw()
    stopReason: str | None = None
    usage: msgspec.Raw = msgspec.Raw()


class _MistralChunk(msgspec.Struct, gc=False):
    type: str
    text: str | None = None
    thinking: list[_Words] | None = None


class _MistralDelta(msgspec.Struct, gc=False):
    content: str | list[_MistralChunk] | None = None
    tool_calls: list[_Call] | None = None


class _MistralChoice(msgspec.Struct, gc=False):
    delta: _MistralDelta
    finish_reason: str | None = None


class _Mistral(msgspec.Struct, gc=False):
    choices: list[_MistralChoice]
    id: str = ""
    model: str = ""
    usage: msgspec.Raw = msgspec.Raw()


class _OllamaMessage(msgspec.Struct, gc=False):
    content: str = ""
    thinking: str | None = None
    tool_calls: msgspec.Raw = msgspec.Raw()


class _Ollama(msgspec.Struct, gc=False):
    message: _OllamaMessage
    model: str = ""
    done: bool = False


class _CohereContent(msgspec.Struct, gc=False):
    thinking: str | None = None
    text: str | None = None


class _CohereMessage(msgspec.Struct, gc=False):
    content: _CohereContent | list[_CohereContent] | None = None
    tool_calls: _Call | list[_Call] | None = None


class _CohereDelta(msgspec.Struct, gc=False):
    message: _CohereMessage | None = None
    finish_reason: str | None = None
    usage: msgspec.Raw = msgspec.Raw()


class _Cohere(msgspec.Struct, gc=False):
    type: str
    delta: _CohereDelta | None = None
    index: int = 0


_TYPES: dict[str, Any] = {
    "openai-chat": _Chat,
    "openai-responses": _Responses,
    "anthropic": _Anthropic,
    "gemini": _Gemini,
    "gemini-interactions": _Interaction,
    "bedrock": _Bedrock,
    "mistral": _Mistral,
    "ollama": _Ollama,
    "cohere": _Cohere,
}
_LENGTHS = struct.Struct(">II")


def frames(dialect: str, body: bytes) -> list[bytes]:
    """The payloads of a body, by the shortest way that is right for what this provider sends."""
    if dialect == "bedrock":
        return _messages(body)
    if dialect == "ollama":
        return body.split(b"\n")[:-1]
    end = b"\r\n\r\n" if b"\r\n\r\n" in body else b"\n\n"
    events = body.split(end)[:-1]
    if body.startswith(b"data: "):
        return [event[6:] for event in events if event != b"data: [DONE]"]
    return [data for event in events if (data := event[event.find(b"data: ") + 6 :]) != b"[DONE]"]


def checked(body: bytes) -> None:
    """What the checksums of a binary stream cost by themselves; no reader may leave them out."""
    at, size = 0, len(body)
    while at < size:
        total, _ = _LENGTHS.unpack_from(body, at)
        crc32(body[at : at + 8])
        crc32(body[at : at + total - 4])
        at += total


def _messages(body: bytes) -> list[bytes]:
    payloads, at, size = [], 0, len(body)
    while at < size:
        total, headers = _LENGTHS.unpack_from(body, at)
        payloads.append(body[at + 12 + headers : at + total - 4])
        at += total
    return payloads


def decoder(dialect: str) -> Callable[[bytes], int]:
    """Splits and decodes a body; returns how many frames there were."""
    decode = msgspec.json.Decoder(_TYPES[dialect]).decode

    def run(body: bytes) -> int:
        payloads = frames(dialect, body)
        for payload in payloads:
            decode(payload)
        return len(payloads)

    return run
