"""A chat request as the house model sees it."""

from __future__ import annotations

from ..jsons import as_list, as_object, as_text
from ..persona import OfferedTool, View
from .request import Message, Request


def view_of(request: Request) -> View:
    """The conversation, with the reasoning that this provider would render into the prompt."""
    turn = request.turns[-1] if request.turns else ()
    visible = [message for message in request.assistants if message.index in request.visible]
    return View(
        asked=next((message.text for message in reversed(request.messages) if message.role == "user"), ""),
        turn=max(1, len(request.turns)),
        steps=sum(message.role == "assistant" for message in turn),
        rounds=sum(bool(message.calls) for message in turn),
        tools=tuple(_offered(tool) for tool in request.tools),
        choice=_choice(request.body.get("tool_choice")),
        thinks=request.thinks,
        results=_results(turn),
        notes=tuple(message.reasoning(request.profile.field) or message.text for message in visible),
        readable=bool(visible),
        began=any(message.index in request.visible for message in turn),
    )


def _offered(tool: object) -> OfferedTool:
    function = as_object(tool)
    return OfferedTool(
        as_text(function.get("name")), as_text(function.get("description")), as_object(function.get("parameters"))
    )


def _choice(choice: object) -> str:
    return as_text(choice) if choice == "none" else as_text(as_object(as_object(choice).get("function")).get("name"))


def _results(turn: tuple[Message, ...]) -> tuple[tuple[str, str], ...]:
    calls = [as_object(call) for message in turn for call in as_list(message.raw.get("tool_calls"))]
    names = {as_text(call.get("id")): as_text(as_object(call.get("function")).get("name")) for call in calls}
    return tuple((names.get(answer.call_id, ""), answer.text) for answer in turn if answer.role == "tool")
