"""A generateContent request as the house model sees it."""

from __future__ import annotations

from collections.abc import Mapping

from ..jsons import as_list, as_object, as_text, compact
from ..persona import OfferedTool, View
from .ledger import Ledger
from .request import Content, Request


def view_of(request: Request, ledger: Ledger) -> View:
    """The conversation, with the thoughts behind the signatures that came back."""
    turn = request.open_turn
    model = [content for content in turn if content.role == "model"]
    return View(
        asked=request.contents[request.opening].text if request.opening >= 0 else "",
        turn=max(1, sum(content.is_user for content in request.contents)),
        steps=len(model),
        rounds=sum(bool(content.calls) for content in model),
        tools=tuple(_offered(declaration) for declaration in request.declarations),
        choice=_choice(request),
        thinks=request.thinks,
        results=tuple(_result(answer) for content in turn for answer in content.answers),
        notes=tuple(note for content in request.model_contents for note in _notes(content, ledger)),
        readable=any(_can_carry(request, content) for content in request.model_contents),
        began=any(_can_carry(request, content) for content in model),
    )


def words_of(request: Request) -> list[str]:
    """The prompt as words: instruction and tools first, then what each message says."""
    head = [request.body.get("systemInstruction"), request.body.get("tools")]
    words = [word for value in head if value for word in compact(value).split()]
    for content in request.contents:
        words.append(f"<{content.role}>")
        for part in content.parts:
            words += part.text.split()
            said = [value for value in (part.call, part.answer) if value is not None]
            words += [word for value in said for word in compact(value).split()]
    return words


def _can_carry(request: Request, content: Content) -> bool:
    # 2.5 signs only where functions are offered, and then the first part; Gemini 3 signs every response.
    return request.profile.validates or bool(content.calls)


def _notes(content: Content, ledger: Ledger) -> list[str]:
    mints = [ledger.find(part.signature) for part in content.parts if part.signature]
    return [mint.thought for mint in mints if mint is not None and mint.thought]


def _offered(declaration: Mapping[str, object]) -> OfferedTool:
    schema = as_object(declaration.get("parametersJsonSchema"))
    return OfferedTool(
        as_text(declaration.get("name")),
        as_text(declaration.get("description")),
        schema or as_object(_plain(declaration.get("parameters"))),
    )


def _plain(schema: object) -> object:
    """A schema with Google's upper-case type names as JSON Schema writes them."""
    if isinstance(schema, list):
        return [_plain(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: value.lower() if name == "type" and isinstance(value, str) else _plain(value)
        for name, value in schema.items()
    }


def _choice(request: Request) -> str:
    config = as_object(as_object(request.body.get("toolConfig")).get("functionCallingConfig"))
    mode = as_text(config.get("mode")).upper()
    allowed = as_list(config.get("allowedFunctionNames"))
    if mode == "NONE":
        return "none"
    return as_text(allowed[0]) if mode == "ANY" and allowed else ""


def _result(answer: Mapping[str, object]) -> tuple[str, str]:
    response = as_object(answer.get("response"))
    text = next((value for value in response.values() if isinstance(value, str)), compact(response))
    return as_text(answer.get("name")), text
