"""An Ollama request as the house model sees it: its template shows the thoughts of the open turn."""

from __future__ import annotations

from ..jsons import as_object, as_text, compact
from ..persona import OfferedTool, View
from .request import Request


def view_of(request: Request) -> View:
    """The messages, with the thoughts of the turn under way."""
    made = [message for message in request.open_turn if message.role == "assistant"]
    called = [as_text(call.get("name")) for message in made for call in message.calls]
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
        thinks=request.thinks,
        results=tuple(
            (as_text(answer.raw.get("tool_name")) or name, answer.text)
            for name, answer in zip(called, answers, strict=True)
        ),
        notes=tuple(message.thinking for message in made if message.thinking) if readable else (),
        readable=readable,
        began=readable,
    )


def words_of(request: Request) -> list[str]:
    """The prompt as words."""
    words = compact(request.body.get("tools")).split() if request.tools else []
    for message in request.messages:
        thinking = message.thinking if message.index > request.opening else ""
        words += [f"<{message.role}>", *thinking.split(), *message.text.split()]
        words += [word for call in message.calls for word in compact(call).split()]
    return words
