"""A Responses request as the judge and the house model see it: one conversation, stored part and input together.

Tokens are counted by counting words; reasoning is part of the output, as the providers count it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256

from ..jsons import JsonObject, as_list, as_object, as_objects, as_text, compact
from ..persona import OfferedTool, View, offered
from ..script import Step
from ..streams import arguments_text, count_words
from .ledger import Ledger, Made, text_of
from .profiles import Profile

CALLS = ("function_call", "custom_tool_call")
OUTPUTS = tuple(f"{kind}_output" for kind in CALLS)
_SAID = frozenset({"reasoning", *CALLS})
# What a tool takes that takes any text.
_ONE_TEXT: JsonObject = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}


@dataclass(frozen=True, slots=True)
class Item:
    """One item of the conversation; ``index`` is its place in ``input``, negative where it came from a store."""

    index: int
    kind: str
    id: str
    raw: Mapping[str, object]

    @property
    def carrier(self) -> str:
        """Its encrypted content, empty when it has none."""
        return as_text(self.raw.get("encrypted_content"))

    @property
    def call_id(self) -> str:
        """What ties a call to its output."""
        return as_text(self.raw.get("call_id"))

    @property
    def said(self) -> bool:
        """Whether the model said it."""
        return self.kind in _SAID or self.raw.get("role") == "assistant"

    @property
    def text(self) -> str:
        """The text of a message, of a call's output, or of raw reasoning."""
        return text_of(self.raw.get("output") if self.kind.endswith("_output") else self.raw.get("content"))


def kind_of(raw: Mapping[str, object]) -> str:
    """The type of an item; messages may leave it out."""
    return as_text(raw.get("type")) or ("message" if "role" in raw else "")


def read_item(index: int, raw: Mapping[str, object]) -> Item:
    """Read one item."""
    return Item(index, kind_of(raw), as_text(raw.get("id")), raw)


@dataclass(frozen=True)
class Request:
    """A parsed request of one account to one model."""

    profile: Profile
    body: JsonObject
    account: str
    ledger: Ledger

    @cached_property
    def store(self) -> bool:
        """Whether the response will be stored."""
        return self.profile.host.keeps_state and self.body.get("store") is not False

    @property
    def user(self) -> str:
        """The end user it names."""
        return as_text(self.body.get("safety_identifier")) or as_text(self.body.get("user"))

    @cached_property
    def reasoning(self) -> Mapping[str, object]:
        """The ``reasoning`` parameter."""
        return as_object(self.body.get("reasoning"))

    @cached_property
    def input(self) -> tuple[Item, ...]:
        """The items of ``input`` as they came."""
        given = self.body.get("input")
        if isinstance(given, str):
            return (read_item(0, {"role": "user", "content": given}),)
        return tuple(read_item(index, as_object(raw)) for index, raw in enumerate(as_list(given)))

    @cached_property
    def earlier(self) -> tuple[Item, ...]:
        """What ``previous_response_id`` stands for."""
        previous = as_text(self.body.get("previous_response_id"))
        kept = self.ledger.kept(previous, self.profile.host.name, self.account) if previous else None
        return tuple(read_item(-1, raw) for raw in kept.conversation) if kept else ()

    @cached_property
    def items(self) -> tuple[Item, ...]:
        """The whole conversation, references replaced by what they stand for."""
        return (*self.earlier, *(self._resolved(item) for item in self.input))

    @cached_property
    def added_tools(self) -> dict[str, tuple[str, Mapping[str, object]]]:
        """The functions and custom tools that items offer, by name, each with the namespace that it stands in."""
        found: dict[str, tuple[str, Mapping[str, object]]] = {}
        for item in self.items:
            for tool in as_objects(item.raw.get("tools")) if item.kind == "additional_tools" else ():
                space = as_text(tool.get("name")) if tool.get("type") == "namespace" else ""
                for each in as_objects(tool.get("tools")) if space else (tool,):
                    if each.get("type") in ("function", "custom"):
                        found[as_text(each.get("name"))] = (space, each)
        return found

    @cached_property
    def effort(self) -> str:
        """The effort in force: the last update's, else the parameter, else the model's own."""
        updates = (item.raw.get("reasoning") for item in self.items if item.kind == "configuration_update")
        said = [effort for update in updates if (effort := as_text(as_object(update).get("effort")))]
        updated = said[-1] if said else ""
        return updated or as_text(self.reasoning.get("effort")) or self.profile.effort

    @property
    def thinks(self) -> bool:
        """Whether the model reasons on this request."""
        return self.profile.reasons and self.effort != "none"

    @property
    def context(self) -> str:
        """Which earlier reasoning the model gets to read."""
        asked = as_text(self.reasoning.get("context"))
        return self.profile.context if asked in ("", "auto") else asked

    @property
    def summarizes(self) -> bool:
        """Whether the response shows summaries."""
        asked = self.reasoning.get("summary") or self.reasoning.get("generate_summary")
        return bool(asked) or self.profile.always_summarized

    @property
    def encrypts(self) -> bool:
        """Whether the response carries encrypted content."""
        asked = "reasoning.encrypted_content" in as_list(self.body.get("include"))
        return not self.profile.raw and (asked or self.profile.always_encrypted)

    def compacts(self, prompt: int) -> bool:
        """Whether a prompt of so many words is longer than the request wants to have it."""
        edits = as_objects(self.body.get("context_management"))
        limits = [edit.get("compact_threshold") for edit in edits if edit.get("type") == "compaction"]
        return any(isinstance(limit, int) and prompt > limit for limit in limits)

    @cached_property
    def turn_start(self) -> int:
        """The position in ``items`` of the last user message; -1 when there is none."""
        return max((place for place, item in enumerate(self.items) if item.raw.get("role") == "user"), default=-1)

    @cached_property
    def steps(self) -> tuple[tuple[int, tuple[Item, ...]], ...]:
        """The model's responses: runs of what it said, each with the position where it begins."""
        return tuple(_runs(self.items))

    @cached_property
    def prefixes(self) -> list[str]:
        """A digest of what stands before each item, and one of all; reasoning itself does not count."""
        return prefixes_of(self, self.items)

    def made(self, item: Item) -> Made | None:
        """What an item was minted as: by its encrypted content, its id, or its call id."""
        if item.carrier and (made := self.ledger.carried(item.carrier)):
            return made
        if item.id:
            return self.ledger.named(item.id)
        calls = self.ledger.called(item.call_id) if item.kind in CALLS else ()
        return calls[-1] if calls else None

    def withheld(self, place: int, item: Item) -> str:
        """Why the model does not get to read a reasoning item that came back; empty when it does."""
        made = self.made(item)
        if made is not None and not self.profile.raw:
            if made.origin.account != self.account:
                return "organization_mismatch"
            if made.origin.model != self.profile.reported:
                return "model_mismatch"
            if self.profile.drops_silently and made.origin.user != self.user:
                return "end_user_mismatch"
            if self.profile.binds_prefix and made.prefix != self.prefixes[place]:
                return "prefix_mismatch"
        return "turn_boundary" if self.context == "current_turn" and place < self.turn_start else ""

    def _resolved(self, item: Item) -> Item:
        made = self.ledger.named(item.id) if item.kind == "item_reference" else None
        return Item(item.index, made.kind, item.id, made.raw) if made and self.readable(made) else item

    def readable(self, made: Made) -> bool:
        """Whether an item can be looked up by its id."""
        origin = made.origin
        return origin.stored and (origin.host, origin.account) == (self.profile.host.name, self.account)


def prefixes_of(request: Request, items: Sequence[Item]) -> list[str]:
    """Digests of instructions, tools and the items before each place, however ids, forms and JSON are written."""
    running = sha256(compact([request.body.get("instructions"), as_list(request.body.get("tools"))]).encode())
    found = [running.hexdigest()]
    for item in items:
        if item.kind != "reasoning":
            said = [item.kind, item.raw.get("role"), item.call_id, item.raw.get("name"), item.text, _arguments(item)]
            running.update(compact(said).encode())
        found.append(running.hexdigest())
    return found


def prefixes_after(request: Request, output: Sequence[Mapping[str, object]]) -> list[str]:
    """The digests of what stands before each item that follows a request."""
    items = [*request.items, *(read_item(-1, raw) for raw in output)]
    return prefixes_of(request, items)[len(request.items) :]


def _arguments(item: Item) -> object:
    text = as_text(item.raw.get("arguments")) or as_text(item.raw.get("input"))
    try:
        return json.loads(text) if text else None
    except ValueError:
        return text


def _runs(items: Sequence[Item]) -> Iterator[tuple[int, tuple[Item, ...]]]:
    start = 0
    for place in range(len(items) + 1):
        if place == len(items) or not items[place].said:
            if place > start:
                yield start, tuple(items[start:place])
            start = place + 1


def view_of(request: Request) -> View:
    """The conversation, with the reasoning that the provider would render into the prompt."""
    start = request.turn_start
    items = request.items
    turn = [said for place, said in request.steps if place > start]
    readable = [place for place, _ in request.steps if place > start or request.context == "all_turns"]
    users = [item for item in items if item.raw.get("role") == "user"]
    return View(
        asked=users[-1].text if users else "",
        turn=max(1, len(users)),
        steps=len(turn),
        rounds=sum(any(item.kind in CALLS for item in said) for said in turn),
        tools=(
            *(offered(tool) for tool in as_objects(request.body.get("tools")) if tool.get("type") == "function"),
            *(_offered(tool) for _, tool in request.added_tools.values()),
        ),
        choice=_choice(request.body.get("tool_choice")),
        thinks=request.thinks,
        results=_results(items, start),
        notes=notes_of(request) if request.thinks else (),
        readable=request.thinks and bool(readable),
        began=request.thinks and bool(turn),
    )


def _offered(tool: Mapping[str, object]) -> OfferedTool:
    found = offered(tool)
    return replace(found, parameters=_ONE_TEXT) if tool.get("type") == "custom" else found


def notes_of(request: Request) -> tuple[str, ...]:
    """The reasoning that the model gets to read, decrypted or looked up, oldest first."""
    texts = []
    for place, item in enumerate(request.items):
        if item.kind == "reasoning" and not request.withheld(place, item):
            texts.append(_thought(request, item))
    return tuple(text for text in texts if text)


def _thought(request: Request, item: Item) -> str:
    if request.profile.raw:
        return item.text
    made = request.ledger.carried(item.carrier) if item.carrier else request.ledger.named(item.id)
    stored = made is not None and (bool(item.carrier) or request.readable(made))
    return made.thought if made is not None and stored else ""


def _choice(choice: object) -> str:
    return as_text(choice) if choice == "none" else as_text(as_object(choice).get("name"))


def _results(items: tuple[Item, ...], start: int) -> tuple[tuple[str, str], ...]:
    names = {item.call_id: as_text(item.raw.get("name")) for item in items if item.kind in CALLS}
    outputs = [item for item in items[start + 1 :] if item.kind in OUTPUTS]
    return tuple((names.get(item.call_id, ""), item.text) for item in outputs)


def prompt_words(request: Request) -> list[str]:
    """The prompt as words: instructions and tools first, then the items; reasoning only where the model reads it."""
    tools = as_list(request.body.get("tools"))
    words = as_text(request.body.get("instructions")).split() + (compact(tools).split() if tools else [])
    for item in request.items:
        words.append(f"<{item.raw.get('role') or item.kind}>")
        if item.kind in CALLS:
            words += f"{item.raw.get('name')} {item.raw.get('arguments') or item.raw.get('input')}".split()
        elif item.kind != "reasoning":
            words += item.text.split()
    # At the end: what the model reads of its reasoning changes with the turn, and with it the prompt.
    return words + [word for note in notes_of(request) for word in note.split()]


def count_usage(step: Step, prompt: int, hit: int) -> JsonObject:
    """The usage object; the step's own numbers win."""
    units = (*step.earlier, step)
    reasoning = count_words(*(unit.reasoning for unit in units))
    calls = [f"{call.name} {arguments_text(call)}" for unit in units for call in unit.tool_calls]
    output = reasoning + count_words(*(text for unit in units for text in (unit.text, unit.refusal)), *calls)
    counted: JsonObject = {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": hit, "cache_write_tokens": 0},
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": reasoning},
        "total_tokens": prompt + output,
    }
    return {**counted, **step.usage}
