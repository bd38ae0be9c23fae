"""What holds where the opaque values of a payload are changed, whatever the dialect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from thinkback.model.blocks import carriers_of
from thinkback.wire.result import ReadResult

Rewrite: TypeAlias = Callable[[bytes, Callable[[str], str]], bytes]
_OPAQUE = ("signature", "encrypted", "redacted", "thought_signature")


def check(rewrite: Rewrite, payload: bytes, found: Sequence[str]) -> None:
    """The values ``found`` are changed, in their order, and no other byte of the payload is."""
    seen: list[str] = []

    def change(value: str) -> str:
        seen.append(value)
        return value.upper() * 2

    made = rewrite(payload, change)

    assert list(found) == seen
    for value in found:
        payload = payload.replace(f'"{value}"'.encode(), f'"{value.upper() * 2}"'.encode())
    assert payload == made


def check_body(rewrite: Rewrite, raw: bytes, read: Callable[[bytes], ReadResult], framing: str) -> None:
    """Every opaque value that is read of a changed body is the changed one, and values that stay change nothing."""
    changed = _rewritten(rewrite, raw, framing, lambda value: f"tb1.{value}")

    assert raw == _rewritten(rewrite, raw, framing, str)
    assert [f"tb1.{value}" for value in _opaque(read(raw))] == _opaque(read(changed))
    assert raw == changed.replace(b"tb1.", b"")


def _rewritten(rewrite: Rewrite, raw: bytes, framing: str, change: Callable[[str], str]) -> bytes:
    if framing == "json":
        return rewrite(raw, change)
    lines = raw.split(b"\n")
    return b"\n".join(b"data: " + rewrite(line[6:], change) if line.startswith(b"data: ") else line for line in lines)


def _opaque(result: ReadResult) -> list[str]:
    carriers = [carrier for block in result.blocks for carrier in carriers_of(block)]
    return [carrier.value for carrier in carriers if carrier.kind in _OPAQUE]
