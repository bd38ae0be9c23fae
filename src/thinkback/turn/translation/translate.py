"""The parameters of a client's request as those of the endpoint it goes to, and what had to stay behind.

Promises: a parameter goes along, becomes a setting, is done by whoever sends the request, or is named in ``left`` with
the reason; nothing is lost silently. Must not: look at messages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from thinkback.errors import SettingError
from thinkback.model.commits import Tool
from thinkback.model.target import Settings, Target, lookup, merge, without
from thinkback.turn.plan import History, Plan
from thinkback.turn.translation.paths import first, leaves, within
from thinkback.wire.parameters import Params
from thinkback.wire.registry import dialect

# A part of these says nothing without the others.
_CHOICES = ("tool_choice", "toolConfig.toolChoice", "toolConfig.functionCallingConfig")
_THINKING = ("thinking", "additionalModelRequestFields.thinking")
_WHOLE = (*_CHOICES, *_THINKING)


class Translated(NamedTuple):
    """Native parameters for the target, the settings with the request's own wishes in them, and a sentence for each
    parameter that stayed behind. ``asked`` are the keys of those settings that are the request's own wishes.
    """

    params: Params
    settings: Settings
    left: tuple[str, ...]
    asked: frozenset[str] = frozenset()


def translate(
    front: str, target: Target, params: Params, settings: Settings, amid: Mapping[str, Any] = MappingProxyType({})
) -> Translated:
    """``params`` of a request of dialect ``front`` for ``target``. Of the same dialect they are what they were.

    ``amid`` are those that stand among its messages; in another dialect they are parameters like the others.
    What the request says of reasoning becomes settings, which beat those given. How the response streams is not said:
    add ``dialect(...).options(...)``. Raises ``UnsupportedContent`` for what must not stay behind.
    """
    spoken = target.endpoint.dialect
    if front == spoken:
        return Translated(params, settings, ())
    from thinkback.turn.translation import parameters, reasoning

    params = merge(params, dict(amid))
    words = dialect(front).parameters
    params = words.normal(params) if words.normal is not None else params
    parameters.refuse(front, spoken, params)
    wishes = parameters.read(front, params)
    native, left = parameters.write(target, wishes)
    theirs = dialect(spoken).parameters
    left += [f"{path}: {parameters.why_left(path, words, theirs, spoken)}" for path in wishes.rest]
    settings = reasoning.hidden_by_default(words.reasoning, settings)
    wanted = reasoning.wanted(settings, wishes.settings, target, left)
    return Translated(native, wanted, tuple(left), wishes.settings.explicit)


def plan_without_refused(
    history: History, target: Target, settings: Settings, params: Params, tools: Sequence[Tool] | None = None
) -> tuple[Plan, tuple[str, ...]]:
    """The next request, without those of ``params`` that the endpoint is known to refuse; each is told with the reason.

    A call that must be made beats reasoning: where the two exclude each other, thinking is off. A way to think that the
    model does not have becomes the one that it has. Raises what ``History.plan`` raises; a ``SettingError`` only where
    no parameter of the request is to blame.
    """
    left: list[str] = []
    thinking: Params | None = None  # the parameters before thinking was switched off
    while True:
        try:
            return history.plan(target, settings, tools, params), tuple(left)
        except SettingError as error:
            path = str(error.details.get("key", ""))
            if not path or lookup(params, path) is None:
                raise
            whole = next((one for one in _WHOLE if within(path, (one,))), path)
            off = target.rule.thinking_off
            if whole in _CHOICES and thinking is None and off and first(params, leaves(off)) is None:
                thinking, params = params, merge(params, off)
                left.append(f"reasoning: it is off, because {error.message}")
                continue
            if whole in _CHOICES and thinking is not None:  # in vain
                params = thinking
                left.pop()
            left.append(f"{path}: {error.message}")
            said = {key: params[key] for key in params if within(whole, (key,))}
            params = without(params, whole)
            if whole in _THINKING:
                from thinkback.turn.translation import reasoning

                wished = reasoning.read(dialect(target.endpoint.dialect).parameters.reasoning, said, set())
                settings = reasoning.wanted(settings, wished, target, left)
