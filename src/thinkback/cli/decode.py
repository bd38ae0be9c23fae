"""``decode``: a recorded response body to neutral blocks.

``decode_body`` is the whole of it as a function of bytes; the command reads a file and prints.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from thinkback.cli import terminal
from thinkback.cli.options import json_option
from thinkback.errors import NotFoundError

if TYPE_CHECKING:
    from thinkback.model.blocks import Block
    from thinkback.model.commits import Failure, Usage
    from thinkback.wire.framing import Framing
    from thinkback.wire.result import ReadResult

Json = dict[str, Any]


@click.command("decode", short_help="Decode a recorded response body.")
@click.argument("dialect")
@click.argument("file")
@click.option("--status", metavar="CODE", type=click.IntRange(100, 599), help="The HTTP status it came with, if known.")
@json_option
def decode_command(dialect: str, file: str, status: int | None, as_json: bool) -> None:
    """Decode a recorded response body: FILE (`-`: standard input) holds SSE, NDJSON or JSON of DIALECT.

    DIALECT is openai-chat. With --json opaque values are printed in full; otherwise only their kind and length.
    """
    decoded = decode_body(dialect, _read(file), status)
    if as_json:
        terminal.print_json(decoded)
    else:
        _print(decoded)


def decode_body(dialect: str, data: bytes, status: int | None = None) -> Json:
    """What ``data`` says, as one object. Raises ``NotFoundError`` for an unknown dialect."""
    from thinkback.model.blocks import Origin
    from thinkback.turn import dialects

    known = dialects.dialect(dialect)
    framing = _framing(data)
    error = _error_body(data) if framing == "json" else None
    if error is not None or (status or 0) >= 400:
        body = data.decode("utf-8", "replace").strip() if error is None else error
        return _refusal(known.failure(status or 0, body), data)
    reader = known.reader(Origin(dialect, "", ""), framing, None, "")
    reader.feed(data)
    reader.close()
    return _as_json(reader.result(), data)


def _read(file: str) -> bytes:
    try:
        if file == "-":
            data = sys.stdin.buffer.read()
        else:
            with open(file, "rb") as stream:
                data = stream.read()
    except OSError as error:
        raise NotFoundError(f"{file} cannot be read: {error.strerror}") from None
    if not data.strip():
        raise NotFoundError(f"{'standard input' if file == '-' else file} is empty: there is nothing to decode")
    return data


def _framing(data: bytes) -> Framing:
    """By the first bytes; several lines of which the first alone is JSON are NDJSON."""
    from thinkback.wire.framing import guess_framing

    framing = guess_framing("", data[:256])
    if framing == "sse" or _parsed(data) is not None:
        return framing
    first, _, rest = data.strip().partition(b"\n")
    return "ndjson" if rest and isinstance(_parsed(first), dict) else framing


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return None


def _error_body(data: bytes) -> Json | None:
    """The body of an HTTP error: JSON that has an error and no answer."""
    body = _parsed(data)
    if isinstance(body, dict) and not isinstance(body.get("choices"), list):
        named = body.get("error") or body.get("detail") or body.get("object") == "error"
        return body if named else None
    return None


_EMPTY_FIELD = re.compile(rb'"(?:reasoning_content|reasoning|reasoning_text)"\s*:\s*""')

# -- to one object ---------------------------------------------------------------------------------------------------


def _as_json(result: ReadResult, data: bytes) -> Json:
    from thinkback.model import canonical
    from thinkback.model.blocks import ThinkingBlock, ToolCall, carriers_of

    blocks, response = result.blocks, result.response
    opaque = [carrier for block in blocks for carrier in carriers_of(block)]
    thoughts = [block for block in blocks if isinstance(block, ThinkingBlock)]
    return {
        "reasoning_text": _reasoning(thoughts, data),
        "answer_text": _answer(result),
        "tool_calls": [_call(block) for block in blocks if isinstance(block, ToolCall)],
        "order": _order(blocks),
        "signatures": _signatures(opaque, response.message),
        "encrypted": [c.value for c in opaque if c.kind in ("encrypted", "redacted")],
        "usage": _usage(result.usage),
        "usage_normalised": normalised(result.usage),
        "finish": response.finish,
        "model": response.origin.served_model or None,
        "complete": response.complete,
        "error": _failure(response.error, data) if response.error else None,
        "blocks": [canonical.decode(canonical.encode(block)) for block in blocks],
    }


def _signatures(opaque: Sequence[Any], message: str) -> list[str]:
    """Signatures of blocks, and Gemini's on the message itself, which may repeat one of a call."""
    found = [carrier.value for carrier in opaque if carrier.kind in ("signature", "thought_signature")]
    fields = json.loads(message) if message else {}
    content = fields.get("extra_content")
    google = content.get("google") if isinstance(content, dict) else None
    for holder in (fields, google):
        value = holder.get("thought_signature") if isinstance(holder, dict) else None
        if isinstance(value, str) and value and value not in found:
            found.append(value)
    return found


def _refusal(failure: Failure, data: bytes) -> Json:
    return {
        "reasoning_text": None,
        "answer_text": None,
        "tool_calls": [],
        "order": [],
        "signatures": [],
        "encrypted": [],
        "usage": _usage(None),
        "usage_normalised": normalised(None),
        "finish": None,
        "model": None,
        "complete": False,
        "error": _failure(failure, data),
        "blocks": [],
    }


def _reasoning(thoughts: Sequence[Any], data: bytes) -> str | None:
    """All readable reasoning; an entry of the details that has only an opaque value bears no text.

    A field that came and stayed empty leaves no block: the body itself tells it from none at all.
    """
    readable = [
        block.thought
        for block in thoughts
        if block.kind != "none" and not block.is_hidden and (block.thought or block.source_field != "reasoning_details")
    ]
    if readable or not _EMPTY_FIELD.search(data):
        return "".join(readable) if readable else None
    return ""


def _answer(result: ReadResult) -> str | None:
    from thinkback.model.blocks import Text

    texts = [block.text for block in result.blocks if isinstance(block, Text)]
    if not texts and result.response.content != "text":
        return None
    return "".join(texts)


def _order(blocks: Sequence[Block]) -> list[str]:
    from thinkback.model.blocks import Text, ThinkingBlock, ToolCall

    names: dict[type[object], str] = {ThinkingBlock: "reasoning", Text: "text", ToolCall: "tool_call"}
    order: list[str] = []
    for block in blocks:
        name = names.get(type(block))
        hidden = isinstance(block, ThinkingBlock) and block.is_hidden
        if name and not hidden and order[-1:] != [name]:
            order.append(name)
    return order


def _call(call: Any) -> Json:
    """A call with its arguments parsed where they are a JSON object or array."""
    arguments: Any = call.arguments
    try:
        parsed = json.loads(call.arguments)
        # a program must be able to read our JSON: numbers without end stay text
        json.dumps(parsed, allow_nan=False)
    except (ValueError, RecursionError):
        parsed = None
    if isinstance(parsed, dict | list):
        arguments = parsed
    return {"id": call.id, "name": call.name, "arguments": arguments, "arguments_raw": call.arguments}


def _usage(usage: Usage | None) -> dict[str, int | None]:
    return {name: getattr(usage, name) if usage else None for name in ("input", "output", "reasoning", "cached")}


def normalised(usage: Usage | None) -> dict[str, int | None]:
    """Usage with reasoning counted into the output, whether the provider counts it inside or beside.

    The reported total tells which; without one, more reasoning than output does.
    """
    counts = _usage(usage)
    reported = (_parsed(usage.wire.encode()) or {}).get("total_tokens") if usage and usage.wire else None
    total = reported if isinstance(reported, int) else None
    given, output, reasoning = counts["input"], counts["output"], counts["reasoning"]
    if output is not None and reasoning:
        added = reasoning > output
        if total is not None and given is not None and total in (given + output, given + output + reasoning):
            added = total != given + output
        counts["output"] = output + reasoning if added else output
    if counts["output"] is not None and given is not None and total is None:
        total = given + counts["output"]
    return {**counts, "total": total}


def _failure(failure: Failure, data: bytes) -> Json:
    """An error as the provider gave it; a code that stood there as a number is one."""
    code: str | int | None = failure.code or None
    if failure.code.lstrip("-").isdigit() and re.search(rb'"code"\s*:\s*' + failure.code.encode() + rb"\b", data):
        code = int(failure.code)
    return {
        "status": failure.status or None,
        "type": failure.type or None,
        "code": code,
        "message": failure.message,
    }


# -- to people -------------------------------------------------------------------------------------------------------


def _print(decoded: Json) -> None:
    pen = terminal.pen(sys.stdout)
    for block in decoded["blocks"]:
        _print_block(block, pen)
    error = decoded["error"]
    if error:
        details = ", ".join(f"{key} {error[key]}" for key in ("status", "type", "code") if error[key] is not None)
        terminal.out(pen(terminal.wrap(f"error: {error['message']}" + (f" ({details})" if details else "")), "red"))
    usage = {key: value for key, value in decoded["usage_normalised"].items() if value is not None}
    facts = [
        f"model {decoded['model'] or 'not named'}",
        f"finish {decoded['finish'] or 'not reported'}",
        "complete" if decoded["complete"] else "not complete",
        *(f"{key} {value}" for key, value in usage.items()),
    ]
    terminal.out(pen(terminal.wrap(" · ".join(facts)), "dim"))


def _print_block(block: Json, pen: terminal.Pen) -> None:
    match block["type"]:
        case "thinking":
            hidden = " (repeats)" if block.get("is_hidden") else ""
            terminal.out(pen(f"[reasoning]{hidden} {block.get('source_field', '')}".rstrip(), "dim", "cyan"))
            for line in terminal.wrap(block["thought"]).splitlines():
                terminal.out(pen(line, "dim", "italic"))
        case "text":
            terminal.out(pen("[text]", "dim"))
            terminal.out(terminal.wrap(block["text"]))
        case "tool_call":
            terminal.out(pen("[tool_call]", "dim"))
            terminal.out(terminal.wrap(f"{block['name']}({block['arguments']})  {block['id']}"))
        case other:
            terminal.out(pen(f"[{other}]", "dim"))
    signature = block.get("signature", "")
    values = ([("signature", signature)] if signature else []) + [
        (carrier["kind"], carrier["value"]) for carrier in block.get("carriers", ())
    ]
    for kind, value in values:
        terminal.out(pen(f"  {kind}, {terminal.plural(len(value), 'character')}", "dim"))
