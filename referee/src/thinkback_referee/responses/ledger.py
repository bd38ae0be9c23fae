"""What was minted: every output item with its ids and carriers, and the responses that are kept by id.

A response is noted as it travelled, whole or streamed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..jsons import JsonObject, as_list, as_object, as_objects, as_text


@dataclass(frozen=True, slots=True)
class Origin:
    """Who minted a response, and for whom."""

    host: str
    model: str
    account: str
    user: str
    stored: bool


@dataclass(frozen=True, slots=True, eq=False)
class Made:
    """One output item. ``group`` names reasoning together with what followed it, up to the next reasoning.

    Copies of one item may differ in id and ciphertext (in a stream's events); ``ids`` and ``carriers`` hold all that
    are valid, the one to name in an error first.
    """

    origin: Origin
    response: str
    group: str
    kind: str
    ids: tuple[str, ...]
    carriers: tuple[str, ...]
    thought: str
    call_id: str
    prefix: str
    """A digest of all that stood before it."""
    raw: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Kept:
    """A stored response: the whole conversation up to and with it, and the body it was answered with."""

    origin: Origin
    conversation: tuple[Mapping[str, object], ...]
    body: JsonObject


class Ledger:
    """Items by id, by carrier and by call; reasoning texts by host; stored responses by id."""

    def __init__(self) -> None:
        self._by_id: defaultdict[str, list[Made]] = defaultdict(list)
        self._by_carrier: dict[str, Made] = {}
        self._by_call: defaultdict[str, list[Made]] = defaultdict(list)
        self._by_thought: defaultdict[str, list[Made]] = defaultdict(list)
        self._groups: defaultdict[str, list[Made]] = defaultdict(list)
        self._kept: dict[str, Kept] = {}

    def add(self, items: Sequence[Made]) -> None:
        """Note the items of one response; the same response again is noted once."""
        for made in items if not any(made.group in self._groups for made in items) else ():
            for identifier in made.ids:
                self._by_id[identifier].append(made)
            for carrier in made.carriers:
                self._by_carrier[carrier] = made
            if made.call_id:
                self._by_call[made.call_id].append(made)
            if made.thought:
                self._by_thought[made.thought].append(made)
            self._groups[made.group].append(made)

    def keep(self, identifier: str, kept: Kept) -> None:
        """Store a response under its id."""
        self._kept[identifier] = kept

    def forget(self, identifier: str) -> bool:
        """Delete a stored response; its items are no longer found by id. False when there is none."""
        if self._kept.pop(identifier, None) is None:
            return False
        for name in [name for name, listed in self._by_id.items() if listed[-1].response == identifier]:
            del self._by_id[name]
        return True

    def kept(self, identifier: str, host: str, account: str) -> Kept | None:
        """A stored response of this account."""
        kept = self._kept.get(identifier)
        return kept if kept and (kept.origin.host, kept.origin.account) == (host, account) else None

    def named(self, identifier: str) -> Made | None:
        """The item that was last minted with this id, wherever."""
        listed = self._by_id.get(identifier)
        return listed[-1] if listed else None

    def carried(self, carrier: str) -> Made | None:
        """The item that was minted with this encrypted content."""
        return self._by_carrier.get(carrier)

    def called(self, call_id: str) -> Sequence[Made]:
        """The calls that were minted with this call id."""
        return self._by_call.get(call_id, ())

    def thought(self, text: str) -> Sequence[Made]:
        """The reasoning items that were minted with exactly this text."""
        return self._by_thought.get(text, ())

    def followers(self, made: Made) -> list[Made]:
        """What followed a reasoning item in its response."""
        return [other for other in self._groups[made.group] if other.kind != "reasoning"]

    def reasoning(self, made: Made) -> list[Made]:
        """The reasoning items that led to an item."""
        return [other for other in self._groups[made.group] if other.kind == "reasoning"]


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


def text_of(content: object) -> str:
    """The joined text of a content value."""
    if isinstance(content, str):
        return content
    parts = as_objects(content)
    return "".join(as_text(part.get("text")) or as_text(part.get("refusal")) for part in parts)


def _distinct(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for value in values if value))


def _shown(raw: Mapping[str, object]) -> str:
    summary = "".join(as_text(as_object(part).get("text")) for part in as_list(raw.get("summary")))
    return text_of(raw.get("content")) or summary
