"""A Responses request as the house model sees it."""

from __future__ import annotations

from ..jsons import as_list, as_object, as_text
from ..persona import OfferedTool, View
from .request import Item, Request


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
        rounds=sum(any(item.kind == "function_call" for item in said) for said in turn),
        tools=tuple(_offered(tool) for tool in as_list(request.body.get("tools")) if _is_function(tool)),
        choice=_choice(request.body.get("tool_choice")),
        thinks=request.thinks,
        results=_results(items, start),
        notes=notes_of(request) if request.thinks else (),
        readable=request.thinks and bool(readable),
        began=request.thinks and bool(turn),
    )


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


def _is_function(tool: object) -> bool:
    return as_object(tool).get("type") == "function"


def _offered(tool: object) -> OfferedTool:
    function = as_object(tool)
    return OfferedTool(
        as_text(function.get("name")), as_text(function.get("description")), as_object(function.get("parameters"))
    )


def _choice(choice: object) -> str:
    return as_text(choice) if choice == "none" else as_text(as_object(choice).get("name"))


def _results(items: tuple[Item, ...], start: int) -> tuple[tuple[str, str], ...]:
    names = {item.call_id: as_text(item.raw.get("name")) for item in items if item.kind == "function_call"}
    outputs = [item for item in items[start + 1 :] if item.kind == "function_call_output"]
    return tuple((names.get(item.call_id, ""), item.text) for item in outputs)
