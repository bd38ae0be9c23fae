"""How a dialect names what a request asks for besides its messages: the types of that vocabulary, and shared words.

Owns the types; the words of one dialect are ``PARAMETERS`` in its ``parameters`` module. A path is dotted: ``a.b`` is
the member ``b`` of the member ``a``. Promises: no field has a default, so that a dialect that leaves one out is a type
error. Must not: read a request, which ``turn.translation`` does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

Params: TypeAlias = dict[str, Any]
Word: TypeAlias = Literal["auto", "none", "required"]
"""Whether the model is to call a tool."""


class Form(NamedTuple):
    """An answer in JSON, of ``schema`` where there is one. ``strict``: the provider is to hold the model to it."""

    schema: Mapping[str, Any] | None = None
    name: str = ""
    strict: bool | None = None
    description: str = ""


class ToolChoice(msgspec.Struct, frozen=True):
    """Which tools the model is to call.

    ``path`` is where the choice stands, ``words`` its value for each word that the dialect has, ``one`` the value for
    one tool by name, ``several`` that for some of them; ``None`` where there is none. ``parallel`` is the path of a
    boolean that allows several calls in one response; ``single`` that of one inside the choice that forbids them. Both
    are ``""`` where there is none.
    """

    path: str
    words: Mapping[Word, Any]
    one: Callable[[str], Any] | None
    several: Callable[[Word, Sequence[str]], Any] | None
    parallel: str
    single: str


class AnswerForm(msgspec.Struct, frozen=True):
    """The form that an answer has to have. How a schema is written is said by the dialect's ``options``.

    ``paths`` are the places where it may stand; the first that is understood counts. ``read`` is for a dialect that
    spreads it over several members: it takes parameters and returns the form and the paths that it understood.
    ``json`` are the parameters for JSON without a schema, ``None`` where it cannot be requested. Beside the schema, at
    ``about``, stand the members of ``takes``: ``strict``, ``description``.
    """

    paths: tuple[str, ...]
    read: Callable[[Params], tuple[Form | None, frozenset[str]]] | None
    json: Params | None
    about: str
    takes: frozenset[str]


class Reasoning(msgspec.Struct, frozen=True):
    """Where a request controls reasoning: paths, of which the first that has a value counts.

    ``effort`` is a word, ``budget`` a number of tokens, ``switch`` turns it on or off, ``shown`` says whether the
    client is to see it. ``verbosity`` is the one path for the length of the answer, ``""`` where there is none.
    ``hidden_by_default``: a client that does not request it gets none, because its program may take the first text for
    the answer.
    """

    effort: tuple[str, ...]
    budget: tuple[str, ...]
    switch: tuple[str, ...]
    shown: tuple[str, ...]
    verbosity: str
    hidden_by_default: bool


class Refusal(NamedTuple):
    """A parameter that must not be lost: a value at ``path`` that ``asks`` for something is refused for ``reason``."""

    path: str
    reason: str
    asks: Callable[[Any], bool]


class Parameters(msgspec.Struct, frozen=True):
    """The vocabulary of a dialect's requests.

    ``names``: paths of each common parameter; the first is written, all are read. ``read_only``: paths that are read
    before those and never written. ``names_at``: by endpoint id, the paths that only this endpoint has. ``ranges``: the
    smallest and the largest value, where other dialects allow more. ``longest_user``: characters of the end user's
    name, 0 without a limit. ``handled``: set by whoever sends the request. ``implied``: values that request what every
    dialect does anyway. ``refused``: what a request to another dialect must not lose. ``own``: fields for one provider
    alone; a name behind a dot is a member of each object in a list. ``bare``: objects
    that ask for something without a member. ``normal`` gives parameters in the spelling of
    these tables, ``None`` where there is only one spelling.
    """

    normal: Callable[[Params], Params] | None
    names: Mapping[str, tuple[str, ...]]
    read_only: Mapping[str, tuple[str, ...]]
    names_at: Mapping[str, Mapping[str, str]]
    ranges: Mapping[str, tuple[float, float]]
    longest_user: int
    handled: frozenset[str]
    implied: Mapping[str, tuple[Any, ...]]
    refused: tuple[Refusal, ...]
    own: tuple[str, ...]
    bare: frozenset[str]
    choice: ToolChoice | None
    form: AnswerForm
    reasoning: Reasoning


def same(*names: str) -> dict[str, tuple[str, ...]]:
    """Parameters whose path is the common name itself."""
    return {name: (name,) for name in names}


def under(path: str, names: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Parameters that are members of the object at ``path``, by their common names."""
    return {name: (f"{path}.{key}",) for name, key in names.items()}


PLAIN: Mapping[Word, Any] = {"auto": "auto", "none": "none", "required": "required"}
"""The words of a choice where they are what they mean."""
AUTO = ("auto", "default")
"""Service tiers that are what is used without one."""
UNIT = (0, 1)
ONE_ANSWER = "a response has one answer there"
NO_LOGPROBS = "the probabilities of tokens do not come along"
KEPT_ELSEWHERE = "what it stands for is kept by another service"
ONLY_TEXT = "answers are text there"


def function(name: str) -> Any:
    """The choice of one function, as chat completions have it."""
    return {"type": "function", "function": {"name": name}}


def is_set(value: Any) -> bool:
    """Whether a value requests anything: neither false nor zero."""
    return value not in (False, 0)


def is_not_one(value: Any) -> bool:
    """Whether a number of answers is another than one."""
    return bool(value != 1)


def is_not_text(value: Any) -> bool:
    """Whether one of the kinds of an answer, as a list or a word, is no text."""
    return any(str(kind).lower() != "text" for kind in (value if isinstance(value, list) else [value]))
