"""Items that a client of the Responses API names by their ids alone, as what they stand for.

Promises: a message of a response that is known in the scope is put in the place of its name, whoever made the id, the
gateway or an upstream; the name of reasoning needs nothing, since the response brings it. What is not known stays as it
is, for an upstream that may know it. Must not: look outside the scope.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import NamedTuple

import msgspec

from thinkback.errors import WireError
from thinkback.log import visible
from thinkback.log.protocol import Store
from thinkback.model import canonical
from thinkback.model.blocks import Carrier, Text, Unknown
from thinkback.model.commits import Commit, Draft

_OURS = re.compile(r"[a-z]+_(resp_[0-9A-Za-z]+)_(\d+)")
_REASONING = "rs_"

_InThread = Callable[[Callable[[], list[Commit]]], Awaitable[list[Commit]]]


class _Name(NamedTuple):
    """What a draft names: an item, and the id under which its response may be known."""

    item: str
    response: str


def names(drafts: Sequence[Draft]) -> bool:
    """Whether anything is named by its id alone."""
    return any(_named(draft) for draft in drafts)


def check(drafts: Sequence[Draft]) -> None:
    """Raise ``WireError`` for a name of something that was said, which nobody but its maker understands."""
    for draft in drafts:
        name = _named(draft)
        if name is not None and not name.item.startswith(_REASONING):
            raise WireError(
                f"Item with id '{name.item}' not found.",
                details={"item": name.item},
                next_actions=("send the item itself", "ask the model that made it"),
            )


async def resolved(drafts: Sequence[Draft], log: Store, scope: bytes, in_thread: _InThread) -> list[Draft]:
    """``drafts`` with messages in the place of their names. Raises ``StoreError``."""
    wanted = {name for name in map(_named, drafts) if name is not None and not name.item.startswith(_REASONING)}
    said: dict[str, list[list[Text]]] = {}
    for response in sorted({name.response for name in wanted}):
        said[response] = _messages(await in_thread(partial(_read, log, scope, response)))
    places = {response: _places(response, wanted) for response in said}
    result: list[Draft] = []
    for draft in drafts:
        name = _named(draft)
        texts = _meant(name, said[name.response], places[name.response]) if name in wanted and name else []
        result += [Draft("assistant", text, draft.response, draft.index) for text in texts] or [draft]
    return [msgspec.structs.replace(draft, index=at) for draft, at in zip(result, _indexes(result), strict=True)]


def _named(draft: Draft) -> _Name | None:
    if draft.kind != "other" or not isinstance(draft.value, Unknown) or '"id"' not in draft.value.wire:
        return None
    entry = canonical.decode(draft.value.wire)
    if not isinstance(entry, dict) or entry.get("type", "item_reference") != "item_reference":
        return None
    item = str(entry.get("id"))
    ours = _OURS.fullmatch(item)
    return _Name(item, ours[1] if ours else item)


def _read(log: Store, scope: bytes, response: str) -> list[Commit]:
    """The commits of the response that is known under an id; none where there is none or more than one."""
    found = {seen.response: seen for seen in log.recognition.lookup(scope, [visible.of_response(response)], 2)}
    if len(found) != 1:
        return []
    seen = next(iter(found.values()))
    return [commit for commit in log.read_to(seen.session, seen.head.hash) if commit.response == seen.response]


def _messages(commits: Sequence[Commit]) -> list[list[Text]]:
    """The messages of a response: what stands between its calls and its reasoning."""
    messages: list[list[Text]] = []
    last = ""
    for commit in commits:
        if isinstance(commit.value, Text) and commit.kind == "assistant":
            if last != "assistant":
                messages.append([])
            messages[-1].append(commit.value)
        last = commit.kind
    return messages


def _places(response: str, wanted: set[_Name]) -> list[int]:
    """The places of the items that are named of a response, in their order."""
    return sorted(_place(name) for name in wanted if name.response == response)


def _place(name: _Name) -> int:
    ours = _OURS.fullmatch(name.item)
    return int(ours[2]) if ours else -1


def _meant(name: _Name, messages: Sequence[list[Text]], places: Sequence[int]) -> list[Text]:
    """The texts of the message that is meant, without what is opaque in them."""
    own = [text for message in messages for text in message if Carrier("item_id", name.item) in text.carriers]
    if not own and _OURS.fullmatch(name.item):
        at = places.index(_place(name))
        own = messages[at] if at < len(messages) else []
    return [Text(text.text, text.source_field) for text in own]


def _indexes(drafts: Sequence[Draft]) -> list[int]:
    """The places of drafts in their responses, which are more where a message has several texts."""
    counted: dict[str, int] = {}
    places: list[int] = []
    for draft in drafts:
        at = draft.index
        if at >= 0:
            at = counted.get(draft.response, 0)
            counted[draft.response] = at + 1
        places.append(at)
    return places
