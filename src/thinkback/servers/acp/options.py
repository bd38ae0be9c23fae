"""What an editor may choose for a conversation: how calls are permitted, the model, and how hard it thinks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from acp import schema

from thinkback.errors import SettingError
from thinkback.session.requests import EndpointConfig
from thinkback.session.session import Session
from thinkback.settings.registry import DEFAULT, KEYS

MODE, MODEL, EFFORT = "permissions.mode", "model", "reasoning.effort"
_CAUTIOUS = "ask"
_MODES = {
    "ask": ("Ask", "What changes something or runs is asked about first."),
    "auto": ("Auto", "Every tool runs without being asked about."),
    "read_only": ("Read only", "Tools that only read run; the others never do."),
}


class Home(NamedTuple):
    """Where a conversation began: the endpoint's id, and the place as the command line or a profile said it."""

    endpoint: str
    place: EndpointConfig


def mode_of(session: Session) -> str:
    """How calls are permitted: as somebody said, and where nobody did, by asking; there is a person to ask."""
    found = session.layers.origin(MODE)
    return _CAUTIOUS if found.layer == "built-in" else str(found.value)


def unsaid(session: Session) -> dict[str, object]:
    """The settings of a turn: asking, where nobody said how calls are permitted. What somebody said is read live, as
    it may be said again while the turn runs.
    """
    return {MODE: _CAUTIOUS} if session.layers.origin(MODE).layer == "built-in" else {}


def modes(session: Session) -> Any:
    """The permission modes, and the current one."""
    available = [schema.SessionMode(id=id, name=name, description=text) for id, (name, text) in _MODES.items()]
    return schema.SessionModeState(current_mode_id=mode_of(session), available_modes=available)


def config_options(session: Session, models: Sequence[str]) -> list[Any]:
    """All that may be chosen, with what is chosen now; ``models`` are further ones as endpoint/model."""
    settings, current = session.settings, model_of(session)
    permissions = [(id, name, text) for id, (name, text) in _MODES.items()]
    efforts = [(word, word.capitalize(), "") for word in (DEFAULT, *KEYS[EFFORT].choices)]
    offered = [(name, name, "") for name in dict.fromkeys((current, *models))]
    return [
        _select(MODE, "Permissions", "mode", mode_of(session), permissions),
        _select(MODEL, "Model", "model", current, offered),
        _select(EFFORT, "Effort", "thought_level", settings.effort or DEFAULT, efforts, KEYS[EFFORT].help),
    ]


def choose(session: Session, option: str, value: object, home: Home) -> None:
    """Set an option from the next request on. Raises ``SettingError`` or ``NotFoundError``; the old value stays."""
    if option == MODE and value not in _MODES:
        raise SettingError(
            f"there is no mode {value!r}",
            details={"key": MODE, "value": value},
            next_actions=(f"modes are {', '.join(_MODES)}",),
        )
    if option in (MODE, EFFORT):
        session.set(option, value)
    elif option == MODEL:
        _go(session, *read_model(value), home)
    else:
        raise SettingError(
            f"there is no option {option!r}",
            details={"key": option},
            next_actions=(f"options are {MODE}, {MODEL} and {EFFORT}",),
        )


def home_of(session: Session) -> Home:
    """Where ``session`` goes now."""
    return Home(session.target.endpoint.id, session.conversation.configure().place)


def _go(session: Session, endpoint: str, model: str, home: Home) -> None:
    """Let requests go elsewhere; to the endpoint of ``home``, at the address and with the key that it has there."""
    if endpoint == home.endpoint:
        place = home.place
        session.use(place.endpoint, model, base_url=place.base_url or None, api_key=place.api_key)
    else:
        session.use(endpoint, model)


def model_of(session: Session) -> str:
    """Where the next request goes, as endpoint/model."""
    target = session.target
    return f"{target.endpoint.id}/{target.model}"


def read_model(value: object) -> tuple[str, str]:
    """(endpoint, model) of ``endpoint/model``. Raises ``SettingError``."""
    endpoint, _, model = value.partition("/") if isinstance(value, str) else ("", "", "")
    if not (endpoint and model):
        raise SettingError(
            f"{value!r} names no endpoint and model",
            details={"key": MODEL, "value": value},
            next_actions=("say it as endpoint/model: openai/gpt-5",),
        )
    return endpoint, model


def _select(
    id: str, name: str, category: Any, current: str, choices: Sequence[tuple[str, str, str]], help: str = ""
) -> Any:
    options = [
        schema.SessionConfigSelectOption(value=value, name=label, description=text or None)
        for value, label, text in choices
    ]
    return schema.SessionConfigOptionSelect(
        type="select",
        id=id,
        name=name,
        description=help or None,
        category=category,
        current_value=current,
        options=options,
    )
