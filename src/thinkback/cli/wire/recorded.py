"""Recorded exchanges: their responses as values, and the log as it stood before a recorded request.

Where a request repeats a response that was recorded, the log gets the response as it was recorded; all else is what
the request says.
"""

from __future__ import annotations

import itertools
import json
import re
import struct
import unicodedata
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote

import msgspec

from thinkback.cli.dialect_endpoints import of_dialect, url_of
from thinkback.model.blocks import Origin, Text, ToolCall, ToolResult, carriers_of
from thinkback.model.commits import Draft, Request, block_draft
from thinkback.model.target import Target
from thinkback.rules import Rulebook
from thinkback.session import config
from thinkback.wire.framing import guess_framing
from thinkback.wire.registry import PACKAGES, dialect
from thinkback.wire.result import ReadOptions, ReadResult

Json = dict[str, Any]

# the type of a header's value in an event stream
_STRING = 7
_MODEL_IN_PATH = re.compile(r"/models?/([^/]+?)(?::\w+)?(?:/converse|/converse-stream|/invoke\S*)?(?:\?|$)")


class Recorded(NamedTuple):
    """A response that was recorded, and the record of our own request for it."""

    result: ReadResult
    request: Request | None


def is_known(exchange: Json) -> bool:
    """Whether the exchange is of a dialect that can be read."""
    return exchange.get("dialect") in PACKAGES


def target_of(exchange: Json, rulebook: Rulebook) -> Target:
    """Where the request of ``exchange`` went."""
    provider = str(exchange.get("provider") or "unknown")
    endpoint = of_dialect(rulebook, provider, exchange["dialect"])
    url = url_of(endpoint, provider)
    return rulebook.target(endpoint.id, _model(exchange), base_url=url, on=config.today())


def _model(exchange: Json) -> str:
    """The model as the body names it, else as the path does."""
    request = exchange.get("request") or {}
    named = (request.get("body") or {}).get("model")
    if named:
        return str(named)
    path = _MODEL_IN_PATH.search(str(request.get("path") or ""))
    return unquote(path[1]) if path else ""


def response_of(exchange: Json, target: Target) -> ReadResult | None:
    """The recorded response as values; ``None`` where there is none, or an error in its place."""
    response = exchange.get("response") or {}
    if response.get("status", 200) >= 400:
        return None
    data = body_of(response)
    origin = Origin(target.endpoint.dialect, target.base_url, target.model)
    framing = "event-stream" if "frames" in response else guess_framing(response.get("content_type") or "", data[:64])
    options = ReadOptions(target.rule.reasoning_field, tags=target.rule.tags)
    reader = dialect(target.endpoint.dialect).reader(origin, framing, options, "")
    reader.feed(data)
    reader.close()
    return reader.result()


def body_of(response: Json) -> bytes:
    """The body of a recorded response as bytes; a decoded event stream is encoded again."""
    if "frames" in response:
        return b"".join(_frame(_headers(frame), json.dumps(frame["payload"]).encode()) for frame in response["frames"])
    return response["raw"].encode() if "raw" in response else json.dumps(response.get("body")).encode()


def _headers(frame: Json) -> dict[str, str]:
    kind: str = frame["message_type"]
    return {f":{kind}-type": frame["type"], ":message-type": kind, ":content-type": "application/json"}


def _frame(headers: Mapping[str, str], payload: bytes) -> bytes:
    """A message of AWS's binary event stream: a prelude, headers that are strings, the payload, and two checksums."""
    block = b"".join(_header(name.encode(), value.encode()) for name, value in headers.items())
    prelude = struct.pack("!II", 16 + len(block) + len(payload), len(block))
    body = prelude + struct.pack("!I", zlib.crc32(prelude)) + block + payload
    return body + struct.pack("!I", zlib.crc32(body))


def _header(name: bytes, value: bytes) -> bytes:
    return struct.pack("!B", len(name)) + name + struct.pack("!BH", _STRING, len(value)) + value


class RequestDrafts(NamedTuple):
    """A request as drafts of the log: how many recorded responses it repeats, and its other parameters."""

    used: int
    drafts: list[Draft]
    params: dict[str, Any]


def drafts_of(body: Json, target: Target, earlier: Sequence[Recorded]) -> RequestDrafts:
    """The log before the request ``body``. Reasoning that was not recorded is taken for the target's own: it accepted
    the request."""
    ids = (f"r{number}" for number in itertools.count())
    origin = Origin(target.endpoint.dialect, target.base_url, target.model)
    read = dialect(target.endpoint.dialect).read_request(body, lambda: next(ids), origin)
    left = list(earlier)
    drafts: list[Draft] = []
    answers: dict[str, tuple[str, str]] = {}
    used = 0
    for response, group in itertools.groupby(read.drafts, key=lambda draft: draft.response):
        found = list(group)
        recorded = _recorded(found, left) if response else None
        if recorded is None:
            drafts += [_answer(draft, answers) for draft in found]
            continue
        left.remove(recorded)
        used += 1
        if recorded.request is not None:
            drafts.append(Draft("request", recorded.request, response))
        result = recorded.result
        drafts.append(Draft("response", result.response, response))
        drafts += [block_draft(block, response, index) for index, block in enumerate(result.blocks)]
        if result.usage is not None:
            drafts.append(Draft("provider_usage", result.usage, response))
        for sent, made in zip(_calls(found), [b for b in result.blocks if isinstance(b, ToolCall)], strict=True):
            answers[sent.id] = response, made.id
    return RequestDrafts(used, drafts, read.params)


def _answer(draft: Draft, answers: dict[str, tuple[str, str]]) -> Draft:
    """A result under the id that the recorded call has: clients give calls ids of their own."""
    value = draft.value
    if not isinstance(value, ToolResult) or value.id not in answers:
        return draft
    response, id = answers[value.id]
    return Draft("tool_result", value if value.id == id else msgspec.structs.replace(value, id=id), response)


def _calls(drafts: Sequence[Draft]) -> list[ToolCall]:
    return [draft.value for draft in drafts if isinstance(draft.value, ToolCall)]


def _recorded(drafts: Sequence[Draft], responses: Sequence[Recorded]) -> Recorded | None:
    """The recorded response that ``drafts`` repeat: by its calls where it has any, else by its text."""
    calls = _calls(drafts)
    text = _folded("".join(draft.value.text for draft in drafts if isinstance(draft.value, Text)))
    opaque = {carrier.value for draft in drafts for carrier in _carriers(draft.value)}
    for recorded in responses:
        blocks = recorded.result.blocks
        made = [block for block in blocks if isinstance(block, ToolCall)]
        if len(calls) != len(made) or not all(map(_same, calls, made)):
            continue
        answer = _folded("".join(block.text for block in blocks if isinstance(block, Text)))
        shared = any(carrier.value in opaque for block in blocks for carrier in carriers_of(block))
        if calls or shared or (text and answer == text):
            return recorded
    return None


def _carriers(value: Any) -> Any:
    """The opaque values of a draft's value, if it is a block."""
    return carriers_of(value) if hasattr(value, "carriers") else ()


def _same(sent: ToolCall, made: ToolCall) -> bool:
    """Whether a call is the one that was made: clients give an id of their own where there is none."""
    if sent.name != made.name:
        return False
    return sent.id == made.id or _parsed(sent.arguments) == _parsed(made.arguments)


def _parsed(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


def _folded(text: str) -> str:
    """Recorders normalise typography: letters and digits alone are compared."""
    return "".join(c for c in unicodedata.normalize("NFKC", text) if c.isalnum())
