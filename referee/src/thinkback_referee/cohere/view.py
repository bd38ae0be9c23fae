"""A Cohere request as the house model sees it: thinking of the open turn is read, older one is optional and ignored."""

from __future__ import annotations

from ..jsons import as_object, as_text, compact
from ..persona import OfferedTool, View
from .request import Request

_CHOICES = {"NONE": "none"}


def view_of(request: Request) -> View:
    """The messages, with the thinking of the turn under way."""
    made = [message for message in request.open_turn if message.role == "assistant"]
    names = {
        as_text(call.get("id")): as_text(as_object(call.get("function")).get("name")) for m in made for call in m.calls
    }
    answers = [message for message in request.open_turn if message.role == "tool"]
    readable = request.thinks and bool(made)
    return View(
        asked=request.messages[request.opening].text if request.opening >= 0 else "",
        turn=max(1, sum(message.role == "user" for message in request.messages)),
        steps=len(made),
        rounds=sum(bool(message.calls) for message in made),
        tools=tuple(
            OfferedTool(as_text(tool.get("name")), as_text(tool.get("description")), as_object(tool.get("parameters")))
            for tool in request.tools
        ),
        choice=_CHOICES.get(as_text(request.body.get("tool_choice")), ""),
        thinks=request.thinks,
        results=tuple((names.get(as_text(answer.raw.get("tool_call_id")), ""), answer.text) for answer in answers),
        notes=tuple(message.thinking for message in made if message.thinking) if readable else (),
        readable=readable,
        began=readable,
    )


def words_of(request: Request) -> list[str]:
    """The prompt as words: tools first, then each message as the model sees it."""
    words = compact(request.body.get("tools")).split() if request.tools else []
    for message in request.messages:
        thinking = message.thinking if message.index > request.opening else None
        words += [f"<{message.role}>", *(thinking or "").split(), *message.text.split()]
        words += [word for call in message.calls for word in compact(call.get("function")).split()]
    return words
