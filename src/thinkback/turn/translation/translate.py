"""The parameters of a client's request as those of the endpoint it goes to, and what had to stay behind.

Promises: a parameter goes along, becomes a setting, or is named in ``left`` with the reason; nothing is lost silently.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from thinkback.errors import SettingError
from thinkback.model.commits import Tool
from thinkback.model.target import Settings, Target, lookup
from thinkback.turn.plan import History, Plan
from thinkback.turn.translation import parameters

_FIELDS = {"reasoning.enabled": "enabled", "reasoning.effort": "effort", "reasoning.maxTokens": "max_tokens"}


class Translated(NamedTuple):
    """Native parameters for the target, the settings with the request's own wishes in them, and a sentence for each
    parameter that stayed behind.
    """

    params: dict[str, Any]
    settings: Settings
    left: tuple[str, ...]


def translate(front: str, target: Target, params: dict[str, Any], settings: Settings) -> Translated:
    """``params`` of a request of dialect ``front`` for ``target``. Of the same dialect they are what they were.

    What the request says of reasoning becomes settings, which beat those given.
    """
    spoken = target.endpoint.dialect
    if front == spoken:
        return Translated(params, settings, ())
    wishes = parameters.read(front, params)
    native, lost = parameters.write(spoken, target.endpoint.id, wishes)
    lost += [f"{path}: {spoken} has no name for it" for path in wishes.rest]
    return Translated(native, _with(settings, wishes.settings), tuple(lost))


def _with(settings: Settings, wished: Settings) -> Settings:
    """``settings`` with what the request itself asks for."""
    asked = {field: getattr(wished, field) for key, field in _FIELDS.items() if key in wished.explicit}
    return msgspec.structs.replace(settings, **asked, explicit=settings.explicit | wished.explicit)


def plan_without_refused(
    history: History, target: Target, settings: Settings, params: dict[str, Any], tools: Sequence[Tool] | None = None
) -> tuple[Plan, tuple[str, ...]]:
    """The next request, without those of ``params`` that the endpoint is known to refuse; each is told with the reason.

    Raises what ``History.plan`` raises; a ``SettingError`` only where no parameter of the request is to blame.
    """
    left: list[str] = []
    while True:
        try:
            return history.plan(target, settings, tools, params), tuple(left)
        except SettingError as error:
            path = str(error.details.get("key", ""))
            if not path or lookup(params, path) is None:
                raise
            left.append(f"{path}: {error.message}")
            params = parameters.without(params, path)
