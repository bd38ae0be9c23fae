"""``decode``: a recorded response body to neutral blocks.

``decode_body`` is the whole of it as a function of bytes; the command reads a file and prints.
"""

from __future__ import annotations

import json
import sys
import zlib
from typing import TYPE_CHECKING, Any

import click

from thinkback.cli import exits, terminal
from thinkback.cli.options import DIALECTS, json_option
from thinkback.errors import NotFoundError

if TYPE_CHECKING:
    from thinkback.wire.framing import Framing

Json = dict[str, Any]

_HELP = f"""\
Decode a recorded response body. FILE (`-` is standard input) holds SSE, NDJSON, JSON or a binary event stream of
DIALECT.

--json prints opaque values in full; otherwise only their kind and length are printed.

{DIALECTS}
"""

# Where a dialect puts an answer: a body that has one of them is no error.
_ANSWERS: dict[str, type | tuple[type, ...]] = {
    "choices": list,
    "candidates": list,
    "content": list,
    "output": (list, dict),
    "outputs": list,
    "steps": list,
    "message": dict,
}


@click.command("decode", short_help="Decode a recorded response body.", help=_HELP)
@click.argument("dialect")
@click.argument("file")
@click.option("--status", metavar="CODE", type=click.IntRange(100, 599), help="HTTP status of the response, if known.")
@json_option
def decode_command(dialect: str, file: str, status: int | None, as_json: bool) -> None:
    """Read, decode, print."""
    decoded = decode_body(dialect, read_file(file, "decode"), status)
    if as_json:
        terminal.print_json(decoded)
    else:
        _print(decoded)
    error = decoded["error"]
    if error and error["type"] == "malformed" and not decoded["blocks"]:
        sys.exit(exits.code_of("wire"))


def decode_body(dialect: str, data: bytes, status: int | None = None) -> Json:
    """What ``data`` says, as one object. Raises ``NotFoundError`` for an unknown dialect."""
    from thinkback.cli.wire import decoded
    from thinkback.model.blocks import Origin
    from thinkback.wire import registry

    known = registry.dialect(dialect)
    framing = _framing(data)
    error = _error_body(data) if framing == "json" else None
    if error is not None or (status or 0) >= 400:
        body = data.decode("utf-8", "replace").strip() if error is None else error
        return decoded.refusal(known.failure(status or 0, body), data)
    reader = known.reader(Origin(dialect, "", ""), framing, None, "")
    reader.feed(data)
    reader.close()
    return decoded.as_json(known.trace, reader.result(), data)


def read_file(file: str, purpose: str) -> bytes:
    """The bytes of ``file``, or of standard input. Raises ``NotFoundError`` where there are none."""
    try:
        if file == "-":
            data = sys.stdin.buffer.read()
        else:
            with open(file, "rb") as stream:
                data = stream.read()
    except OSError as error:
        raise NotFoundError(f"{file} cannot be read: {error.strerror}") from None
    if not data.strip():
        raise NotFoundError(f"{'standard input' if file == '-' else file} is empty: there is nothing to {purpose}")
    return data


def _framing(data: bytes) -> Framing:
    """By the first bytes; several lines of which the first alone is JSON are NDJSON."""
    from thinkback.wire.framing import guess_framing

    if len(data) >= 12 and zlib.crc32(data[:8]) == int.from_bytes(data[8:12], "big"):
        return "event-stream"  # its prelude ends with its own checksum
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
    if isinstance(body, dict) and not any(isinstance(body.get(name, ...), kind) for name, kind in _ANSWERS.items()):
        named = body.get("error") or body.get("detail") or body.get("object") == "error"
        return body if named or isinstance(body.get("message"), str) else None
    return None


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
