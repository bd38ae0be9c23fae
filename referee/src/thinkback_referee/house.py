"""The house script: a model that plays a multi-turn tool user with any tools, and proves that it got its notes back.

Its answers follow from the request and the seed alone. In the first thought of a turn it notes a code word derived from
the user's words; later it can name the code word only by reading it in reasoning that the client returned and that the
provider would show the model. So "code word amber-417 still known" in an answer proves the replay, and "I have lost my
notes" proves its absence. By itself it calls only tools whose names say that they look something up: an agent would do
what any other one says, with words of the prompt.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from .jsons import as_object, as_text
from .persona import OfferedTool, View
from .script import Call, Step
from .subjects import fill_arguments, subjects_of, words_of

LOST = "I have lost my notes"
KNOWN = "code word {word} still known"

_THINGS = ("amber", "birch", "cobalt", "dune", "ember", "fern", "garnet", "heron", "indigo", "juniper", "kelp")
_NOTE = re.compile(r"the code word is ([a-z]+-\d{3})")
_PARALLEL = frozenset({"both", "parallel"})
_EXCERPT = 200
# The word that the name of a tool begins with which looks something up. What is not here is not called.
_LOOKS = frozenset(
    {
        "clock", "date", "find", "forecast", "get", "list", "look", "lookup", "read", "search", "temperature", "time",
        "weather",
    }
)  # fmt: skip
# The names of tools that work with numbers, and what may stand behind the word; other parameters they may not have.
_RECKONS = frozenset({"add", "calculate", "count", "divide", "multiply", "subtract", "sum"})
_NUMBERS = frozenset({"integers", "number", "numbers", "two"})
_NUMERIC = frozenset({"integer", "number"})
# Words of a tool's name, of its parameters' names and of its description that say it does more than look something up,
# whatever its name begins with.
_ACTS = frozenset(
    {
        "agent", "apply", "bash", "browse", "browser", "click", "cmd", "code", "command", "commands", "create",
        "creates", "curl", "delegate", "delete", "deletes", "deploy", "download", "downloads", "edit", "edits", "eval",
        "evaluate", "evaluates", "exec", "execute", "executes", "fetch", "fetches", "git", "handoff", "http", "install",
        "interpreter", "ipython", "jupyter", "kill", "launch", "launches", "modify", "move", "mutate", "navigate",
        "notebook", "open", "patch", "post", "powershell", "process", "push", "python", "remove", "removes", "rename",
        "replace", "request", "run", "runs", "save", "script", "send", "sends", "shell", "spawn", "spawns", "sql",
        "start", "stdin", "subagent", "submit", "task", "terminal", "update", "updates", "upload", "uri", "url", "urls",
        "web", "write", "writes",
    }
)  # fmt: skip
# The same in names alone: descriptions have these words in other senses.
_ACTS_IN_NAMES = _ACTS | frozenset(
    {
        "act", "append", "args", "argv", "ask", "call", "cancel", "change", "chat", "commit", "computer", "copy",
        "destroy", "expr", "expression", "insert", "instructions", "invoke", "js", "make", "mkdir", "mv", "node",
        "program", "prompt", "put", "repl", "rm", "set", "sh", "skill", "stop", "store", "transfer", "trigger", "zsh",
    }
)  # fmt: skip
_SPACE = re.compile(r"__|[.:/]")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def house_step(view: View, seed: int = 0) -> Step:
    """The next response of the house model."""
    return _call_tools(view, seed) if view.rounds < _rounds_wanted(view) else _conclude(view, seed)


def code_word(text: str, seed: int = 0) -> str:
    """The code word that the house model notes for a user's message."""
    digest = hashlib.sha256(f"{seed}:{text}".encode()).digest()
    number = int.from_bytes(digest[1:5], "big") % 900 + 100
    return f"{_THINGS[digest[0] % len(_THINGS)]}-{number}"


def _rounds_wanted(view: View) -> int:
    tools = [tool for tool in view.tools if looks_up(tool)]
    if not tools or view.choice == "none":
        return 0
    return 2 if "then" in words_of(view.asked) and len(tools) > 1 else 1


def looks_up(tool: OfferedTool) -> bool:
    """Whether a tool only looks something up or reckons, as far as its words say; one that is not understood does not.

    The name has to begin with a word for it, behind the names of servers (``mcp__weather__forecast``), and no word of
    the tool may say that it acts.
    """
    properties = as_object(tool.parameters.get("properties"))
    named = _words(_SPACE.split(tool.name)[-1])
    names = _words(" ".join((tool.name, *properties)))
    if not named or not _ACTS_IN_NAMES.isdisjoint(names) or not _ACTS.isdisjoint(_words(tool.description)):
        return False
    if named[0] in _RECKONS:
        types = {as_text(as_object(each).get("type")) for each in properties.values()}
        return types <= _NUMERIC and _NUMBERS.issuperset(named[1:])
    return named[0] in _LOOKS


def _words(text: str) -> list[str]:
    """The words of names in camel and snake case, lower case."""
    return [part.lower() for part in _PART.findall(text)]


def _call_tools(view: View, seed: int) -> Step:
    tools = _ranked(view)
    subjects = subjects_of(view.asked)
    if _PARALLEL & set(words_of(view.asked)) and not view.rounds:
        chosen = _parallel(tools, subjects)
    else:
        chosen = [(tools[view.rounds % len(tools)], subjects[-1])]
    calls = [Call(tool.name, fill_arguments(tool.parameters, about)) for tool, about in chosen]
    names = " and ".join(dict.fromkeys(call.name for call in calls))
    thought = f'The user asks: "{_short(view.asked)}". I need {names} before I can answer.'
    return Step(reasoning=think(view, seed, view.rounds, thought), tool_calls=calls)


def _conclude(view: View, seed: int) -> Step:
    results = "; ".join(f"{name or 'tool'}: {text[:_EXCERPT]}" for name, text in view.results)
    notes = _notes(view)
    if results:
        thought = f"The tools returned {_short(results)}. My notes say {', '.join(notes) or 'nothing'}. Time to answer."
    else:
        thought = f'The user says: "{_short(view.asked)}". No tool is needed, I can answer at once.'
    answer = f"Here is what I found: {results}" if results else f'You said: "{_short(view.asked)}"'
    known = memory(view, seed)
    return Step(
        reasoning=think(view, seed, view.steps, thought),
        text="; ".join(part for part in (answer, known) if part) + ".",
    )


def think(view: View, seed: int, step: int, thought: str) -> str:
    """A thought with its place in the conversation, so that no two are alike; the first of a turn makes the note."""
    if not view.thinks:
        return ""
    note = "" if step else f" Note to self: the code word is {_noted(view, seed)}."
    return f"Turn {view.turn}, step {step + 1}. {thought}{note}"


def memory(view: View, seed: int) -> str:
    """What the model says about its notes; nothing when it cannot have any."""
    notes = _notes(view)
    if not view.readable:
        return ""
    if not notes or (view.began and _noted(view, seed) not in notes):
        return LOST
    return "; ".join(KNOWN.format(word=word) for word in notes)


def _noted(view: View, seed: int) -> str:
    """The code word of the turn under way."""
    return code_word(view.opened or view.asked, seed)


def _notes(view: View) -> list[str]:
    """The code words in the reasoning that the model gets to read, oldest first."""
    return list(dict.fromkeys(word for text in view.notes for word in _NOTE.findall(text)))


def _ranked(view: View) -> list[OfferedTool]:
    """The tools, one that must be called first, then those whose words occur most in what the user asked."""
    asked_words = set(words_of(view.asked))

    def rank(tool: OfferedTool) -> tuple[bool, int]:
        described = words_of(f"{tool.name.replace('_', ' ')} {tool.description}")
        return tool.name != view.choice, -len(asked_words & set(described))

    return sorted((tool for tool in view.tools if looks_up(tool)), key=rank)


def _parallel(tools: Sequence[OfferedTool], subjects: Sequence[str]) -> list[tuple[OfferedTool, str]]:
    if len(subjects) > 1:
        return [(tools[0], subjects[-2]), (tools[0], subjects[-1])]
    return [(tools[0], subjects[-1]), (tools[min(1, len(tools) - 1)], subjects[-1])]


def _short(text: str) -> str:
    return text if len(text) <= _EXCERPT else text[: _EXCERPT - 1] + "…"
