"""Common parameters of a request, out of one dialect and into another: a table of names, and what is not in it.

Reasoning is not translated by name: it becomes settings, which the target's rule row says in its own words.
"""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

from thinkback.errors import UnsupportedContent
from thinkback.model.target import Settings, Target, lookup, merge
from thinkback.turn.translation import choices, forms, reasoning
from thinkback.turn.translation.choices import Choice
from thinkback.turn.translation.paths import first, leaves, nested, within
from thinkback.wire.dialect import Dialect
from thinkback.wire.parameters import Form, Parameters, Params
from thinkback.wire.registry import dialect

# What every model does unless told otherwise.
_NEUTRAL = {"frequency_penalty": 0, "presence_penalty": 0}


class Wishes(NamedTuple):
    """What a request asks for, whatever its dialect calls it; ``rest`` are the dotted paths of all else.

    ``beside``: calls may stand beside each other.
    """

    common: Params
    choice: Choice | None = None
    settings: Settings = Settings()
    rest: tuple[str, ...] = ()
    form: Form | None = None
    beside: bool | None = None


def read(spoken: str, params: Params) -> Wishes:
    """The wishes in the native ``params`` of the dialect ``spoken``, spelt as the wire has them."""
    words = dialect(spoken).parameters
    common: Params = {}
    seen = set(words.handled)
    for name, paths in (*words.read_only.items(), *words.names.items()):
        found = first(params, paths)
        if found is not None and common.get(name) in (None, found[1]):
            common[name] = [found[1]] if name == "stop" and isinstance(found[1], str) else found[1]
            seen.add(found[0])
    choice = choices.read(words.choice, params, seen)
    beside = choices.read_beside(words.choice, params, seen)
    form = forms.read(words.form, params, seen)
    settings = reasoning.read(words.reasoning, params, seen)
    rest = (path for path in leaves(params) if not within(path, seen))
    said = tuple(path for path in rest if lookup(params, path) not in words.implied.get(path, ()))
    said += tuple(path for path in sorted(words.bare) if lookup(params, path) == {})
    return Wishes(common, choice, settings, said, form, beside)


def write(target: Target, wishes: Wishes) -> tuple[Params, list[str]]:
    """(native parameters, what there is no name for) of ``wishes`` for ``target``; settings are not among them."""
    params: Params = {}
    lost: list[str] = []
    native = dialect(target.endpoint.dialect)
    words = native.parameters
    own = words.names_at.get(target.endpoint.id, {})
    for name, value in wishes.common.items():
        paths = words.names.get(name)
        path = own.get(name, paths[0] if paths is not None else "")
        if name == "end_user" and paths is not None:
            path = target.rule.guard.end_user or path
        if path:
            params = merge(params, nested(path, _fitting(native, name, value, lost)))
        elif value != _NEUTRAL.get(name):
            knows = any(name in names for names in words.names_at.values())
            reason = f"{target.endpoint.id} may not know it" if knows else f"{native.name} has no name for it"
            lost.append(f"{name}: {reason}")
    params = merge(params, choices.write(native, wishes.choice, lost))
    params = choices.write_beside(native, wishes.beside, params, lost)
    return merge(params, forms.write(native, wishes.form, lost)), lost


def why_left(path: str, words: Parameters, theirs: Parameters, spoken: str) -> str:
    """Why a request to the dialect ``spoken``, whose words are ``theirs``, goes without what stands at ``path`` in one
    of the dialect with ``words``.
    """
    top = path.partition(".")[0]
    if top in theirs.handled:
        return "whoever sends the request sets it there"
    if within(path, _paths_of(words)):
        return "its value has no equal there"
    if any(place.partition(".")[0] == top for place in _paths_of(theirs)):
        return f"{spoken} says another thing by that name"
    return f"{spoken} has no name for it"


def _paths_of(words: Parameters) -> list[str]:
    """The paths of the parameters that a dialect has words for."""
    reasoning = words.reasoning
    choice = (words.choice.path,) if words.choice is not None else ()
    places = (reasoning.effort, reasoning.budget, reasoning.switch, reasoning.shown, words.form.paths, choice)
    found = [path for paths in (*words.names.values(), *words.read_only.values(), *places) for path in paths]
    return [*found, *([reasoning.verbosity] if reasoning.verbosity else [])]


def refuse(front: str, spoken: str, params: Params) -> None:
    """Raise ``UnsupportedContent`` naming the parameter whose loss would change what the request means."""
    for path, reason, asks in dialect(front).parameters.refused:
        value = lookup(params, path)
        if value is not None and asks(value):
            raise UnsupportedContent(
                f"{path} cannot be asked of an endpoint that speaks {spoken}: {reason}",
                details={"parameter": path, "dialect": spoken},
                next_actions=(f"leave {path} out", f"or use a model whose endpoint speaks {front}"),
            )


def _fitting(native: Dialect, name: str, value: Any, lost: list[str]) -> Any:
    """``value``, or the nearest that the dialect takes."""
    span = native.parameters.ranges.get(name)
    if span is not None and isinstance(value, int | float) and not span[0] <= value <= span[1]:
        nearest = min(max(value, span[0]), span[1])
        lost.append(f"{name} {value}: {native.name} takes it from {span[0]} to {span[1]}, {nearest} is sent")
        return nearest
    longest = native.parameters.longest_user if name == "end_user" else 0
    if longest and isinstance(value, str) and len(value) > longest:
        lost.append(f"{name}: {native.name} takes {longest} characters, its SHA-256 is sent")
        return hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()
    return value
