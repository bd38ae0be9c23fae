"""What the settings of a conversation do to its next request, for people: ``turn.effects`` with what it has now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from thinkback.errors import NotFoundError, SettingError, UnsupportedContent
from thinkback.session.requests import Options, native_params
from thinkback.turn.effects import Effect, configured_effects, effects

if TYPE_CHECKING:
    from thinkback.session.conversation import Conversation


def effects_of(conversation: Conversation) -> dict[str, Effect]:
    """Each setting with the value in force, who decides it, and what other values would change.

    Where no endpoint or model is known yet it is what was set. Raises ``NotFoundError`` for an endpoint that there is
    not, and what is wrong with a profile.
    """
    configuration = conversation.current()
    data = configuration.place.endpoint_settings(configuration.rules)
    try:
        target = configuration.target
        params = native_params(target, Options(), configuration.settings())
    except (NotFoundError, SettingError, UnsupportedContent):  # reported by the request that it stops
        return configured_effects(configuration.layers, data)
    return effects(configuration.layers, data, target, params, tools=bool(conversation.history.tools))
