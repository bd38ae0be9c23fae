"""Apps as a session has them: found on this machine, and held to one conversation.

A session keeps its app in the setting ``session.app``. Another app begins another session, so that what one was told
never reaches the other.
"""

from __future__ import annotations

import difflib
import functools
import warnings
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from thinkback.drive.tools import offered
from thinkback.errors import NotFoundError, RuleFileError, SettingError, ThinkbackError
from thinkback.session import config, requests
from thinkback.session.ids import outside
from thinkback.settings.apps import App, check_constraints, choose_model, parse_app
from thinkback.settings.features import packaged
from thinkback.settings.registry import DEFAULT
from thinkback.turn.controls import UNKNOWN
from thinkback.turn.orphans import last_system

if TYPE_CHECKING:
    from thinkback.model.commits import Commit
    from thinkback.model.target import Settings, Target
    from thinkback.session.endpoint_config import EndpointConfig, Rulebook
    from thinkback.session.requests import Options
    from thinkback.settings import Layers
    from thinkback.turn.plan import History

KEY = "session.app"
_UNKNOWN = {"permissions.mode": "read_only"}
REASONING_CONTEXT_MAX = 3
"""How many responses' reasoning an app carries along."""


class Listed(NamedTuple):
    """An app of this machine: ``file`` is where the person has it, empty for one that ships with thinkback.

    ``app`` is ``None`` where the file has a ``fault``.
    """

    id: str
    file: str
    app: App | None
    fault: str = ""


def listed() -> list[Listed]:
    """Every app, those that ship and the person's own, which win; by id."""
    return [_listed(id, file) for id, file in sorted(_files().items())]


def find(id: str) -> App:
    """The app called ``id``. Raises ``NotFoundError``, and ``RuleFileError`` for a file with faults."""
    own = config.config_dir() / "apps" / f"{id}.toml"
    if own.stem == id and own.parent.name == "apps" and own.is_file():
        return _loaded(own)
    files = _files()
    if id in files:
        return _loaded(files[id])
    close = difflib.get_close_matches(id, files, 1)
    raise NotFoundError(
        f"there is no app {id!r}",
        details={"app": id, "close_matches": close},
        next_actions=(f"did you mean {close[0]}?" if close else f"apps are {', '.join(files)}", "`thinkback apps`"),
    )


def app_of(layers: Layers) -> App | None:
    """The app that these layers name, read now. Raises ``NotFoundError``, ``RuleFileError``."""
    named = _named(layers)
    if not named:
        return None
    try:
        return find(named)
    except (NotFoundError, RuleFileError) as error:
        error.next_actions += (f"or unset {KEY} to go on without it: `/set unset {KEY}` in the chat",)
        raise


def _named(layers: Layers) -> str:
    value = next((entry.value for entry in layers.entries if entry.key == KEY), DEFAULT)
    return "" if value == DEFAULT else str(value)


def stacked(layers: Layers, app: App | ThinkbackError | None) -> Layers:
    """``layers`` with what the ``app`` of the session says, and with what every app carries of reasoning.

    Where its file cannot be used nothing is asked (``check`` raises), and a turn under way does nothing but read.
    """
    if isinstance(app, ThinkbackError):
        return layers.replace("app", _UNKNOWN)
    return layers if app is None else layers.replace("app", app.settings).carrying(REASONING_CONTEXT_MAX)


def is_switch(had: Layers, wanted: Layers) -> bool:
    """Whether ``wanted`` name another app than the layers ``had``."""
    return _named(wanted) not in ("", _named(had))


def check_switch(had: Layers, wanted: Layers, name: str, commits: Sequence[Commit]) -> None:
    """Raise where ``wanted`` name no app of this machine, or another than the conversation ``name`` began with."""
    id, old = _named(wanted), _named(had)
    find(id)
    if any(commit.kind == "user" for commit in commits):
        began = f"the app {old}" if old else "no app"
        raise SettingError(
            f"{KEY} cannot become {id}: the conversation {name!r} began with {began}, and apps do not share one",
            details={"key": KEY, "value": id, "session": name},
            next_actions=("begin another session with the app", f"or unset {KEY} to go on without one"),
        )


def fitted(app: App | ThinkbackError | None, place: EndpointConfig, book: Rulebook) -> EndpointConfig:
    """``place`` with the app's endpoint and model where it has none, and a model that the app knows."""
    if app is None or isinstance(app, ThinkbackError):
        return place
    endpoint = endpoint_at(app, place.endpoint, place.base_url, book)
    return msgspec.structs.replace(place, endpoint=endpoint, model=choose_model(app, place.model, place.endpoint)[0])


def endpoint_at(app: App, endpoint: str, base_url: str, book: Rulebook) -> str:
    """The endpoint of a request: ``endpoint`` if given, else the app's, also at an address of one's own.

    An address that the catalogue knows by its host is its own endpoint: no key of the app's endpoint goes there.
    """
    if endpoint or not app.endpoint or not base_url:
        return endpoint or app.endpoint
    known = book.endpoint_for_url(base_url).id
    return app.endpoint if known == UNKNOWN else ""


def warn_of(layers: Layers, model: str, endpoint: str) -> None:
    """Warn where ``model`` is not one of the app's, so that another is used in its place."""
    try:
        app = app_of(layers)
    except (NotFoundError, RuleFileError):  # the request says so
        return
    warning = choose_model(app, model, endpoint)[1] if app is not None else ""
    if warning:
        warnings.warn(warning, stacklevel=outside())


def check(app: App | None, settings: Settings, target: Target) -> None:
    """Raise ``SettingError`` where the endpoint or model refuses what the app asks for, before the network."""
    if app is None:
        return
    check_constraints(app, target.endpoint.id, target.model, settings.effort or "")
    _feature_tools(app, target.endpoint.id)


def formed(app: App | None, options: Options) -> Options:
    """``options`` with the form that answers of the app have, unless the caller gave one."""
    if app is None or not app.output_schema or options.response_format is not None:
        return options
    return msgspec.structs.replace(options, response_format=requests.JsonSchema(app.output_schema, app.id))


def completed(app: App | None, target: Target, history: History, options: Options) -> Options:
    """``options`` with all that the ``app`` says where the caller does not: form, system prompt, the provider's tools.

    The prompt is that of the first request, and stays: a conversation that changed it would lose what it rests on.
    """
    if app is None:
        return options
    options = formed(app, options)
    if options.system is None and app.system_prompt and last_system(history.commits) is None:
        options = msgspec.structs.replace(options, system=app.system_prompt)
    endpoint = target.endpoint
    own = requests.stamped(offered(_feature_tools(app, endpoint.id))[0], endpoint.dialect) or ()
    before = history.tools if options.tools is None else options.tools
    missing = tuple(tool for tool in own if tool not in before)
    return msgspec.structs.replace(options, tools=(*before, *missing)) if missing else options


def _feature_tools(app: App, endpoint: str) -> list[dict[str, object]]:
    """The tools of the provider's own that the app's features are, in the words of ``endpoint``."""
    tools: list[dict[str, object]] = []
    for feature in packaged().feature:
        if feature.name not in app.features or not feature.tools:
            continue
        own = next((row.tool for row in feature.tools if endpoint in row.endpoints), None)
        if own is None:
            known = [name for row in feature.tools for name in row.endpoints]
            raise SettingError(
                f"the app {app.id} asks for {feature.name}, and no way is known to say it to {endpoint}",
                details={"app": app.id, "features": (feature.name,), "endpoint": endpoint, "allowed": known},
                next_actions=(f"use one of {', '.join(known)}", f"or leave out {feature.name}"),
            )
        tools.append(dict(own))
    return tools


def _listed(id: str, file: Path | _Shipped) -> Listed:
    where = str(file) if isinstance(file, Path) else ""
    try:
        return Listed(id, where, _loaded(file))
    except RuleFileError as error:
        return Listed(id, where, None, error.message)


class _Shipped(NamedTuple):
    """A file of the package."""

    name: str
    text: str


def _files() -> dict[str, Path | _Shipped]:
    """The file of every app, by its id."""
    own = (config.config_dir() / "apps").glob("*.toml")
    return _shipped() | {file.stem: file for file in own if file.is_file()}


@functools.cache
def _shipped() -> dict[str, Path | _Shipped]:
    place = resources.files("thinkback.settings").joinpath("data", "apps")
    files = [_Shipped(file.name, file.read_text("utf-8")) for file in place.iterdir() if file.name.endswith(".toml")]
    return {file.name.removesuffix(".toml"): file for file in files}


def _loaded(file: Path | _Shipped) -> App:
    """The app in a file, read now."""
    if not isinstance(file, Path):
        return _parsed(file.name, file.text)
    try:
        return _parsed(str(file), config.text_of(file) or "")
    except OSError as error:
        raise RuleFileError(f"{file}: it cannot be read: {error.strerror}", details={"file": str(file)}) from error
    except UnicodeDecodeError as error:
        raise RuleFileError(f"{file}: not UTF-8: {error.reason}", details={"file": str(file)}) from error


@functools.lru_cache(maxsize=16)
def _parsed(name: str, text: str) -> App:
    return parse_app(name, text)
