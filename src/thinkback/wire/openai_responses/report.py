"""What the server says it did with the reasoning it was given back."""

from __future__ import annotations

from typing import Any

import msgspec

from thinkback.model import canonical
from thinkback.wire.result import Report


class _Envelope(msgspec.Struct):
    """The one field of an envelope that is read here; hosts put anything into it."""

    input_transformations: Any = None


def report(envelope: str) -> Report:
    """What the envelope of a response reports; one that says nothing gives an empty report."""
    return Report(tuple(transformations(envelope)))


def transformations(envelope_source: str) -> list[tuple[str, str]]:
    """(item id, ``removed: reason``) of each input item that the server withheld from the model, in input order.

    ``envelope_source`` is ``Response.envelope``; one that says nothing gives an empty list.
    """
    told = canonical.decode(envelope_source, _Envelope).input_transformations if envelope_source else None
    return [
        (str(entry.get("id") or ""), _said(entry))
        for entry in (told if isinstance(told, list) else ())
        if isinstance(entry, dict)
    ]


def _said(entry: dict[str, Any]) -> str:
    action, reason = str(entry.get("action") or "changed"), str(entry.get("reason") or "")
    return f"{action}: {reason}" if reason else action
