"""The dialects that are built in: name to reader and writer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import msgspec

from thinkback.errors import NotFoundError
from thinkback.model.blocks import Origin
from thinkback.model.commits import Draft, Failure
from thinkback.model.deltas import Delta
from thinkback.model.plan import Writer
from thinkback.wire import anthropic, bedrock, cohere, mistral, ollama, openai_chat, openai_responses
from thinkback.wire.framing import Framing
from thinkback.wire.result import ReadOptions, ReadRequest, ReadResult, WantedOptions


class ResponseReader(Protocol):
    """Bytes of one response to deltas, then to values."""

    def feed(self, data: bytes) -> list[Delta]: ...

    def close(self) -> list[Delta]: ...

    def fail(self, failure: Failure) -> None: ...

    def result(self) -> ReadResult: ...

    @property
    def finish(self) -> str | None: ...


class Dialect(msgspec.Struct, frozen=True):
    """The functions of one wire format.

    ``options`` are the native parameters for streaming and for a JSON schema of the answer; it raises
    ``UnsupportedContent`` where there is no way to ask for one. ``read_messages`` reads a history as programs of this
    dialect hold it, ``read_request`` a whole request body.
    """

    reader: Callable[[Origin, Framing, ReadOptions | None, str], ResponseReader]
    writer: Writer
    failure: Callable[[int, Any], Failure]
    options: Callable[[WantedOptions], dict[str, Any]]
    read_request: Callable[[Mapping[str, Any], Callable[[], str], Origin], ReadRequest]
    read_messages: Callable[..., list[Draft]]
    raw_response: Callable[[ReadResult], dict[str, Any]]


DIALECTS: dict[str, Dialect] = {
    "anthropic": Dialect(
        reader=anthropic.Reader,
        writer=anthropic.write,
        failure=anthropic.read_failure,
        options=anthropic.options,
        read_request=anthropic.read_request,
        read_messages=anthropic.read_messages,
        raw_response=anthropic.raw_response,
    ),
    "bedrock": Dialect(
        reader=bedrock.Reader,
        writer=bedrock.write,
        failure=bedrock.read_failure,
        options=bedrock.options,
        read_request=bedrock.read_request,
        read_messages=bedrock.read_messages,
        raw_response=bedrock.raw_response,
    ),
    "cohere": Dialect(
        reader=cohere.Reader,
        writer=cohere.write,
        failure=cohere.read_failure,
        options=cohere.options,
        read_request=cohere.read_request,
        read_messages=cohere.read_messages,
        raw_response=cohere.raw_response,
    ),
    "mistral": Dialect(
        reader=mistral.Reader,
        writer=mistral.write,
        failure=mistral.read_failure,
        options=mistral.options,
        read_request=mistral.read_request,
        read_messages=mistral.read_messages,
        raw_response=mistral.raw_response,
    ),
    "ollama": Dialect(
        reader=ollama.Reader,
        writer=ollama.write,
        failure=ollama.read_failure,
        options=ollama.options,
        read_request=ollama.read_request,
        read_messages=ollama.read_messages,
        raw_response=ollama.raw_response,
    ),
    "openai-chat": Dialect(
        reader=openai_chat.Reader,
        writer=openai_chat.write,
        failure=openai_chat.read_failure,
        options=openai_chat.options,
        read_request=openai_chat.read_request,
        read_messages=openai_chat.read_messages,
        raw_response=openai_chat.raw_response,
    ),
    "openai-responses": Dialect(
        reader=openai_responses.Reader,
        writer=openai_responses.write,
        failure=openai_responses.read_failure,
        options=openai_responses.options,
        read_request=openai_responses.read_request,
        read_messages=openai_responses.read_messages,
        raw_response=openai_responses.raw_response,
    ),
}


def dialect(name: str) -> Dialect:
    """The dialect ``name``. Raises ``NotFoundError`` with those that exist."""
    found = DIALECTS.get(name)
    if found is None:
        raise NotFoundError(
            f"there is no dialect {name!r}", next_actions=(f"use one of: {', '.join(sorted(DIALECTS))}",)
        )
    return found
