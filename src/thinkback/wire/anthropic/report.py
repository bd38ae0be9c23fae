"""What the provider says it did to the reasoning it was sent: blocks dropped, earlier turns cleared."""

from __future__ import annotations

from typing import Any

from thinkback.model import canonical
from thinkback.wire.result import Report
from thinkback.wire.values import members_of

_TRANSFORMATIONS = frozenset({"thinking_dropped", "thinking_mismatch_allowed"})
_CLEARED = "cleared_"


def report(envelope: str) -> Report:
    """What the envelope of a response reports; one that says nothing gives an empty report."""
    return Report(tuple(transformations(envelope)), tuple(applied_edits(envelope)))


def transformations(envelope_source: str) -> list[tuple[str, str]]:
    """(place in the request's messages, ``type: reason``) of each thinking block that was not taken as sent."""
    entries = _list(_envelope(envelope_source).get("input_transformations"))
    known = [entry for entry in entries if str(entry.get("type")) in _TRANSFORMATIONS]
    return [(str(entry.get("path", "")), f"{entry['type']}: {entry.get('reason', '')}") for entry in known]


def applied_edits(envelope_source: str) -> list[str]:
    """A sentence for each edit that the provider made to the context of the request."""
    management = _envelope(envelope_source).get("context_management")
    edits = _list(management.get("applied_edits")) if isinstance(management, dict) else []
    return [_sentence(edit) for edit in edits]


def _sentence(edit: dict[str, Any]) -> str:
    counts = [
        f"{value} {key.removeprefix(_CLEARED).replace('_', ' ')}"
        for key, value in edit.items()
        if key.startswith(_CLEARED)
    ]
    return f"{edit.get('type', 'an edit')} cleared {' and '.join(counts) or 'an unreported amount'}"


def _envelope(source: str) -> dict[str, Any]:
    return members_of(canonical.decode(source)) if source else {}


def _list(value: Any) -> list[dict[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
