"""The house script: a model that plays a multi-turn tool user with any tools, and proves that it got its notes back.

Its answers follow from the request and the seed alone. In the first thought of a turn it notes a code word derived
from the user's words; later it can name the code word only by reading it in reasoning that the client returned and
that the provider would show the model. So "code word amber-417 still known" in an answer proves the replay, and
"I have lost my notes" proves its absence.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence

from .jsons import as_list, as_object, as_text
from .request import Message, Request
from .script import Call, Step
from .subjects import fill_arguments, subjects_of, words_of

LOST = "I have lost my notes"
KNOWN = "code word {word} still known"

_THINGS = ("amber", "birch", "cobalt", "dune", "ember", "fern", "garnet", "heron", "indigo", "juniper", "kelp")
_NOTE = re.compile(r"the code word is ([a-z]+-\d{3})")
_PARALLEL = frozenset({"both", "parallel"})
_EXCERPT = 200


def house_step(request: Request, seed: int = 0) -> Step:
    """The next response of the house model."""
    turn = request.turns[-1] if request.turns else ()
    rounds = sum(1 for message in turn if message.calls)
    asked = _asked(request)
    if rounds < _rounds_wanted(request, asked):
        return _call_tools(request, seed, asked, rounds)
    return _conclude(request, seed, asked, turn)


def code_word(text: str, seed: int = 0) -> str:
    """The code word that the house model notes for a user's message."""
    digest = hashlib.sha256(f"{seed}:{text}".encode()).digest()
    number = int.from_bytes(digest[1:5], "big") % 900 + 100
    return f"{_THINGS[digest[0] % len(_THINGS)]}-{number}"


def _asked(request: Request) -> str:
    return next((message.text for message in reversed(request.messages) if message.role == "user"), "")


def _rounds_wanted(request: Request, asked: str) -> int:
    if not request.tools or request.body.get("tool_choice") == "none":
        return 0
    return 2 if "then" in words_of(asked) and len(request.tools) > 1 else 1


def _call_tools(request: Request, seed: int, asked: str, rounds: int) -> Step:
    tools = _ranked(request, asked)
    subjects = subjects_of(asked)
    if _PARALLEL & set(words_of(asked)) and not rounds:
        chosen = _parallel(tools, subjects)
    else:
        chosen = [(tools[rounds % len(tools)], subjects[-1])]
    calls = [Call(_name(tool), fill_arguments(as_object(tool.get("parameters")), about)) for tool, about in chosen]
    names = " and ".join(dict.fromkeys(call.name for call in calls))
    thought = f'The user asks: "{_short(asked)}". I need {names} before I can answer.'
    return Step(reasoning=_think(request, seed, asked, rounds, thought), tool_calls=calls)


def _conclude(request: Request, seed: int, asked: str, turn: Sequence[Message]) -> Step:
    results = _results(turn)
    notes = _notes(request)
    if results:
        thought = f"The tools returned {_short(results)}. My notes say {', '.join(notes) or 'nothing'}. Time to answer."
    else:
        thought = f'The user says: "{_short(asked)}". No tool is needed, I can answer at once.'
    answer = f"Here is what I found: {results}" if results else f'You said: "{_short(asked)}"'
    memory = _memory(request, seed, asked, turn, notes)
    return Step(
        reasoning=_think(request, seed, asked, len([m for m in turn if m.role == "assistant"]), thought),
        text="; ".join(part for part in (answer, memory) if part) + ".",
    )


def _think(request: Request, seed: int, asked: str, step: int, thought: str) -> str:
    """The thought with its place in the conversation, so that no two are alike; the first of a turn makes the note."""
    if not request.thinks:
        return ""
    note = "" if step else f" Note to self: the code word is {code_word(asked, seed)}."
    return f"Turn {max(1, len(request.turns))}, step {step + 1}. {thought}{note}"


def _memory(request: Request, seed: int, asked: str, turn: Sequence[Message], notes: Sequence[str]) -> str:
    """What the model says about its notes; nothing when it cannot have any."""
    if not request.visible:
        return ""
    began = any(message.index in request.visible for message in turn)
    if not notes or (began and code_word(asked, seed) not in notes):
        return LOST
    return "; ".join(KNOWN.format(word=word) for word in notes)


def _notes(request: Request) -> list[str]:
    """The code words in the reasoning that the model gets to read, oldest first."""
    visible = [message for message in request.assistants if message.index in request.visible]
    texts = [message.reasoning(request.profile.field) or message.text for message in visible]
    return list(dict.fromkeys(word for text in texts for word in _NOTE.findall(text)))


def _results(turn: Sequence[Message]) -> str:
    calls = [as_object(call) for message in turn for call in as_list(message.raw.get("tool_calls"))]
    names = {call.get("id"): as_text(as_object(call.get("function")).get("name")) for call in calls}
    answers = [message for message in turn if message.role == "tool"]
    return "; ".join(f"{names.get(answer.call_id, 'tool')}: {answer.text[:_EXCERPT]}" for answer in answers)


def _ranked(request: Request, asked: str) -> list[Mapping[str, object]]:
    """The tools, a named ``tool_choice`` first, then those whose words occur most in what the user asked."""
    named = as_object(as_object(request.body.get("tool_choice")).get("function")).get("name")
    asked_words = set(words_of(asked))

    def rank(tool: Mapping[str, object]) -> tuple[bool, int]:
        described = words_of(f"{_name(tool).replace('_', ' ')} {as_text(tool.get('description'))}")
        return _name(tool) != named, -len(asked_words & set(described))

    return sorted(request.tools, key=rank)


def _parallel(tools: Sequence[Mapping[str, object]], subjects: Sequence[str]) -> list[tuple[Mapping[str, object], str]]:
    if len(subjects) > 1:
        return [(tools[0], subjects[-2]), (tools[0], subjects[-1])]
    return [(tools[0], subjects[-1]), (tools[min(1, len(tools) - 1)], subjects[-1])]


def _name(tool: Mapping[str, object]) -> str:
    return as_text(tool.get("name"))


def _short(text: str) -> str:
    return text if len(text) <= _EXCERPT else text[: _EXCERPT - 1] + "…"
