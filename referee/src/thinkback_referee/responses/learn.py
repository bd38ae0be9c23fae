"""From a response as it travelled, whole or streamed, to the items that the ledger notes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence

from ..jsons import JsonObject, as_list, as_object, as_text
from .ledger import Made, Origin
from .request import text_of

_LINE_END = re.compile(r"\r\n|\n|\r")


def made_of(
    origin: Origin,
    name: str,
    copies: Sequence[Sequence[Mapping[str, object]]],
    prefixes: Iterable[str],
    thoughts: Iterable[str] = (),
) -> list[Made]:
    """The items of one response; ``copies`` are the lists of its items as they stood at different times.

    Copies of an item stand at the same place, and ``prefixes`` are digests of what stands before each. ``name`` is what
    no other response is called. ``thoughts`` are those of the reasoning items, where the items may not show them.
    """
    found: list[Made] = []
    group, reasoned, known = 0, False, iter(thoughts)
    for prefix, *variants in zip(prefixes, *copies, strict=False):
        raw = variants[0]
        kind = as_text(raw.get("type"))
        group += kind == "reasoning" and not reasoned
        reasoned = kind == "reasoning"
        found.append(
            Made(
                origin,
                name,
                f"{name}:{group}",
                kind,
                _distinct(as_text(variant.get("id")) for variant in variants),
                _distinct(as_text(variant.get("encrypted_content")) for variant in variants),
                next(known, _shown(raw)) if reasoned else "",
                as_text(raw.get("call_id")),
                prefix,
                raw,
            )
        )
    return found


def copies_of(response: Mapping[str, object] | str) -> tuple[JsonObject, list[list[Mapping[str, object]]]]:
    """The response object and its items, from a body or the text of an event stream; of a stream both copies."""
    if not isinstance(response, str):
        return dict(response), [_items(response.get("output"))]
    whole: JsonObject = {}
    done: dict[int, Mapping[str, object]] = {}
    for line in _LINE_END.split(response):
        data = line.removeprefix("data:").strip()
        if not line.startswith("data:") or data == "[DONE]":
            continue
        event = as_object(json.loads(data))
        if event.get("type") == "response.output_item.done":
            done[int(str(event.get("output_index")))] = as_object(event.get("item"))
        whole = dict(as_object(event.get("response"))) or whole
    items = [done[index] for index in sorted(done)]
    final = _items(whole.get("output"))
    return whole, [items, final] if len(final) == len(items) else [items or final]


def _items(value: object) -> list[Mapping[str, object]]:
    return [as_object(item) for item in as_list(value)]


def _distinct(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for value in values if value))


def _shown(raw: Mapping[str, object]) -> str:
    summary = "".join(as_text(as_object(part).get("text")) for part in as_list(raw.get("summary")))
    return text_of(raw.get("content")) or summary
