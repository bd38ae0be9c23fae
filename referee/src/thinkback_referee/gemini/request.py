"""A well-formed generateContent request as the judge and the house model see it: contents, steps, turns.

Built only from bodies that passed the schema. Indices are positions in the request's ``contents``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ..jsons import as_list, as_object, as_objects, as_text, compact
from ..persona import OfferedTool, View
from .ledger import Ledger
from .profiles import Host, Profile


@dataclass(frozen=True, slots=True)
class Part:
    """One part, read; ``raw`` is what arrived, with camelCase names."""

    index: int
    raw: Mapping[str, object]

    @property
    def signature(self) -> str:
        """The thought signature; empty when there is none."""
        return as_text(self.raw.get("thoughtSignature"))

    @property
    def call(self) -> Mapping[str, object] | None:
        """The function call, None when the part is something else."""
        return as_object(self.raw["functionCall"]) if "functionCall" in self.raw else None

    @property
    def answer(self) -> Mapping[str, object] | None:
        """The function response, None when the part is something else."""
        return as_object(self.raw["functionResponse"]) if "functionResponse" in self.raw else None

    @property
    def text(self) -> str:
        """Visible text; thoughts are not."""
        return "" if self.raw.get("thought") else as_text(self.raw.get("text"))


@dataclass(frozen=True, slots=True)
class Content:
    """One message; ``role`` is empty where the request leaves it out."""

    index: int
    role: str
    parts: tuple[Part, ...]

    @property
    def calls(self) -> list[tuple[Part, Mapping[str, object]]]:
        """The parts that are function calls, with the call."""
        return [(part, part.call) for part in self.parts if part.call is not None]

    @property
    def answers(self) -> list[Mapping[str, object]]:
        """The function responses."""
        return [part.answer for part in self.parts if part.answer is not None]

    @property
    def is_user(self) -> bool:
        """Whether it opens a turn: not the model's, and more than function responses."""
        return self.role != "model" and any(part.answer is None for part in self.parts)

    @property
    def text(self) -> str:
        """The visible text of all parts."""
        return "".join(part.text for part in self.parts)


@dataclass(frozen=True)
class Request:
    """A request to one model at one host; ``body`` has camelCase names and no nulls."""

    host: Host
    profile: Profile
    body: Mapping[str, object]
    account: str = ""
    """The key or project that pays."""
    streams: bool = False
    listed: bool = False
    """Whether the stream, and so an error of it, is a JSON array."""

    @cached_property
    def contents(self) -> list[Content]:
        """The conversation."""
        return [
            Content(index, as_text(raw.get("role")), _parts(raw))
            for index, raw in enumerate(as_objects(self.body.get("contents")))
        ]

    @cached_property
    def opening(self) -> int:
        """The index of the content that opened the current turn; -1 when there is none."""
        return max((content.index for content in self.contents if content.is_user), default=-1)

    @property
    def open_turn(self) -> Sequence[Content]:
        """What came after the opening of the current turn."""
        return self.contents[self.opening + 1 :]

    @property
    def model_contents(self) -> Iterator[Content]:
        """The model's messages."""
        return (content for content in self.contents if content.role == "model")

    @cached_property
    def thinking(self) -> Mapping[str, object]:
        """``thinkingConfig``; empty when the request has none."""
        return as_object(as_object(self.body.get("generationConfig")).get("thinkingConfig"))

    @property
    def thinks(self) -> bool:
        """Whether the model thinks."""
        budget = self.thinking.get("thinkingBudget")
        if isinstance(budget, int):
            return budget != 0
        return self.profile.thinks or "thinkingLevel" in self.thinking

    @property
    def shows_thoughts(self) -> bool:
        """Whether summaries of thoughts were asked for."""
        return self.thinking.get("includeThoughts") is True

    @cached_property
    def declarations(self) -> list[Mapping[str, object]]:
        """The functions that the model may call."""
        tools = as_objects(self.body.get("tools"))
        return [as_object(item) for tool in tools for item in as_list(tool.get("functionDeclarations"))]


def _parts(raw: Mapping[str, object]) -> tuple[Part, ...]:
    return tuple(Part(index, as_object(part)) for index, part in enumerate(as_list(raw.get("parts"))))


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
