"""The wire shapes of chat completions, typed for speed.

Only what streams carry in every chunk is listed; a key or a type that is not makes decoding fail, and ``read``
falls back to a reading that keeps whatever comes.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from thinkback.model import canonical
from thinkback.model.commits import Failure, Usage
from thinkback.wire.values import words

# Only as deep as they are on the wire: what these shapes let through needs no further check.
_Plain: TypeAlias = str | int | float | bool | None
Counts: TypeAlias = dict[str, _Plain | dict[str, _Plain]]


class FunctionDelta(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """Name and a fragment of the arguments."""

    name: str | None = None
    arguments: str | None = None


class CallDelta(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A fragment of one tool call. ``index`` is missing on a few hosts."""

    index: int | None = None
    id: str | None = None
    type: str | None = None
    function: FunctionDelta | None = None


class ChatDelta(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """What one chunk adds to the message."""

    role: str | None = None
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_text: str | None = None
    reasoning_details: list[dict[str, _Plain]] | None = None
    tool_calls: list[CallDelta] | None = None
    refusal: str | None = None
    channel: str | None = None


class Choice(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """One choice; only index 0 is read."""

    delta: ChatDelta | None = None
    finish_reason: str | None = None
    index: int | None = 0
    logprobs: None = None
    native_finish_reason: str | None = None
    content_filter_results: None = None
    matched_stop: None = None
    stop_reason: None = None
    token_ids: None = None
    usage: Counts | None = None


class Chunk(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """One ``chat.completion.chunk``."""

    choices: list[Choice] | None = None
    id: str | None = None
    object: str | None = None
    created: int | None = None
    model: str | None = None
    system_fingerprint: str | None = None
    service_tier: str | None = None
    provider: str | None = None
    obfuscation: str | None = None
    usage: Counts | None = None
    error: None = None


decode_chunk = msgspec.json.Decoder(Chunk).decode
NO_FUNCTION = FunctionDelta()


def read_usage(raw: Any) -> Usage | None:
    """Token counts of a ``usage`` object (already parsed); ``None`` when there are none."""
    if not isinstance(raw, dict) or not raw:
        return None
    prompt = raw.get("prompt_tokens_details")
    completion = raw.get("completion_tokens_details")
    details = prompt if isinstance(prompt, dict) else {}
    cached = details.get("cached_tokens")
    if cached is None:  # DeepSeek's name, and Kimi's place
        cached = raw.get("prompt_cache_hit_tokens", raw.get("cached_tokens"))
    return Usage(
        input=raw.get("prompt_tokens"),
        output=raw.get("completion_tokens"),
        reasoning=(completion if isinstance(completion, dict) else {}).get("reasoning_tokens"),
        cached=cached,
        cache_write=details.get("cache_write_tokens"),
        wire=canonical.source(raw),
    )


def read_failure(status: int, body: Any) -> Failure:
    """The provider's own words from a parsed error body, whatever shape the host gives it.

    Routers wrap the text of the provider behind them in ``error.metadata.raw``; Google wraps the body in a list; Xiaomi
    says what is wrong in ``param``, which elsewhere is a path.
    """
    if isinstance(body, list) and len(body) == 1 and isinstance(body[0], dict):
        body = body[0]
    error = body.get("error", body) if isinstance(body, dict) else body
    if not isinstance(error, dict):
        code = body.get("code", "") if isinstance(body, dict) else ""
        return Failure(words(error), status, code=words(code))
    message = words(error.get("message") or error.get("detail") or error)
    param = error.get("param")
    if isinstance(param, str) and " " in param.strip() and param not in message:
        message = f"{message}: {param}"
    metadata = error.get("metadata")
    own = error.get("status_code") or error.get("code")
    return Failure(
        message=message,
        status=own if isinstance(own, int) and status < 400 and error is body else status,
        type=words(error.get("type") or ""),
        code=words("" if error.get("code") is None else error["code"]),
        upstream=words(metadata["raw"]) if isinstance(metadata, dict) and metadata.get("raw") else "",
    )
