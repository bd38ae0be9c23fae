"""Apps: what a TOML file says of a system prompt, models, tools and settings that belong together.

Owns the shape of the file and what its errors say: all faults of a file are told at once, each with its key and the
reason. Finding files, starting servers and asking models is others' work. The carry of reasoning is no setting of an
app: every app has it.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Annotated, Any, TypeAlias

import msgspec

from thinkback.errors import RuleFileError, SettingError
from thinkback.model.target import model_matches
from thinkback.settings.features import TOOLS, packaged, usual_effort, violated
from thinkback.settings.files import read_toml, reason_of
from thinkback.settings.layers import Layers
from thinkback.settings.registry import KEYS, PARAMS, Value
from thinkback.settings.values import flatten, quote

BUILTIN_TOOLS = ("read", "list", "search", "write", "edit", "shell", "task", "commit_reasoning")
MCP = "mcp:"
_SHORT = {
    "reasoning_effort": "reasoning.effort",
    "context_size": "context.size",
    "temperature": "params.temperature",
    "max_tokens": "params.max_tokens",
}
_CARRY = "the reasoning that goes along is the same for every app and is not set in one"
_REFUSED = {"reasoning_context": _CARRY, "reasoning.context": _CARRY, "reasoning.keepLast": _CARRY}

Fault: TypeAlias = tuple[str, str]


class Server(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An MCP server: a ``command`` with ``args`` and ``env``, or a ``url`` with ``headers``.

    ``timeout`` of a call is in seconds. ``${NAME}`` in ``env`` and ``headers`` is a variable of the environment.
    """

    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    url: str = ""
    headers: dict[str, str] = {}
    timeout: Annotated[int, msgspec.Meta(ge=1)] = 60

    def __repr__(self) -> str:
        return f"<Server {self.command or 'at a url'}>"  # what it is given to sign in with is nobody's business


class App(msgspec.Struct, frozen=True):
    """One app. ``id`` is what people call it by, the name of its file without ``.toml``.

    ``models`` are names and glob patterns; the first is the default, none means whatever the person uses.
    ``fallback`` stands in for a model that is not among them. ``servers`` are those that the file brings for
    ``mcp:NAME`` in ``tools``; others are the person's own. ``settings`` are the layer ``app``; ``output_schema`` is the
    JSON schema of a structured answer.
    """

    id: str
    name: str
    description: str = ""
    system_prompt: str = ""
    endpoint: str = ""
    models: tuple[str, ...] = ()
    fallback: str = ""
    tools: tuple[str, ...] = ()
    servers: dict[str, Server] = {}
    features: tuple[str, ...] = ()
    output_schema: dict[str, Any] = {}
    settings: dict[str, Value] = {}

    @property
    def default_model(self) -> str:
        """The model that is taken where nobody asks for one."""
        return self.models[0] if self.models else ""

    @property
    def requested_features(self) -> tuple[str, ...]:
        """Its features, and ``tools`` where it has any: what constraints are about."""
        return (*self.features, TOOLS) if self.tools else self.features


def choose_model(app: App, wanted: str, endpoint: str = "") -> tuple[str, str]:
    """(model, warning): ``wanted`` if the app knows it, else its fallback, with a sentence that says so.

    At another ``endpoint`` than the app's own, its list says nothing of what may be asked for.
    """
    if not wanted or not app.models:
        return wanted or app.default_model, ""
    is_elsewhere = bool(app.endpoint and endpoint) and endpoint != app.endpoint
    if is_elsewhere or model_matches(wanted, app.models):
        return wanted, ""
    taken = app.fallback or app.default_model
    return taken, f"the app {app.id} does not know the model {wanted}: {taken} is used ({', '.join(app.models)})"


def check_constraints(app: App, endpoint: str, model: str, effort: str) -> None:
    """Raise ``SettingError`` where what the app asks for is refused by this endpoint or model, before the network."""
    for row in violated(app.requested_features, endpoint, model, effort):
        what = " and ".join(row.features)
        raise SettingError(
            f"the app {app.id} asks {model} for {what}: {row.reason}",
            details={"app": app.id, "features": row.features, "model": model, "endpoint": endpoint, "effort": effort},
            next_actions=(f"take {row.advice}", f"or leave out {what}"),
        )


def parse_app(name: str, text: str) -> App:
    """The app in ``text``. Raises ``RuleFileError`` with the file, and the key and reason of every fault.

    ``name`` is what the file is called in errors, and where the app's id comes from.
    """
    table = read_toml(name, text)
    faults: list[Fault] = []
    read = {field: _field(table, field, faults) for field in _FIELDS if field in table}
    id = name.replace("\\", "/").rpartition("/")[2].removesuffix(".toml")
    models, fallback = read.pop("model", ()), read.get("fallback", "")
    servers, features = read.pop("mcp", {}), read.pop("features", ())
    app = App(
        id, **{"name": id, **read}, models=models, servers=servers, features=features, settings=_settings(table, faults)
    )
    if not id:
        faults.append(("", "the file has no name that the app could be called by"))
    if fallback and not model_matches(fallback, models):
        faults.append(("fallback", f"{fallback} is not among the models"))
    faults += _tool_faults(app)
    faults += _feature_faults(app)
    if faults:
        raise _refused(name, faults)
    return _with_effort(app)


def _field(table: Mapping[str, Any], field: str, faults: list[Fault]) -> Any:
    """The value of one of ``_FIELDS``; what is empty where it is refused."""
    reader, empty = _FIELDS[field]
    try:
        return reader(table[field])
    except _Faulty as found:
        faults += [(".".join(filter(None, (field, key))), reason) for key, reason in found.faults]
        return empty


class _Faulty(Exception):
    """A value that an app cannot have."""

    def __init__(self, *faults: Fault) -> None:
        super().__init__()
        self.faults = faults


def _text(raw: object) -> str:
    if not isinstance(raw, str) or not raw.strip():
        raise _Faulty(("", f"it must be text, not {quote(raw)}"))
    return raw


def _prompt(raw: object) -> str:
    return _text(raw).strip()


def _word(raw: object) -> str:
    text = _text(raw)
    if not text.isprintable() or text != text.strip() or " " in text:
        raise _Faulty(("", f"it must be one word, not {quote(raw)}"))
    return text


def _words(raw: object) -> tuple[str, ...]:
    if not isinstance(raw, list) or not raw:
        raise _Faulty(("", f"it must be a list of names, not {quote(raw)}"))
    words = tuple(_each(str(at), item) for at, item in enumerate(raw))
    twice = next((word for word in words if words.count(word) > 1), "")
    if twice:
        raise _Faulty(("", f"{twice} is given twice"))
    return words


def _each(key: str, raw: object) -> str:
    try:
        return _word(raw)
    except _Faulty as found:
        raise _Faulty((key, found.faults[0][1])) from None


def _models(raw: object) -> tuple[str, ...]:
    models = (_word(raw),) if isinstance(raw, str) else _words(raw)
    if set("*?[") & set(models[0]):
        raise _Faulty(("", f"the first model is the default, so {models[0]} cannot be a pattern"))
    return models


def _features(raw: object) -> tuple[str, ...]:
    table, known = _table(raw), [row.name for row in packaged().feature]
    faults = [(name, _unknown(name, known)) for name in table if name not in known]
    faults += [
        (name, f"it must be true or false, not {quote(value)}")
        for name, value in table.items()
        if name in known and not isinstance(value, bool)
    ]
    if faults:
        raise _Faulty(*faults)
    return tuple(name for name in known if table.get(name))


def _table(raw: object) -> dict[str, Any]:
    if not isinstance(raw, dict):
        raise _Faulty(("", f"it must be a table, not {quote(raw)}"))
    return raw


def _servers(raw: object) -> dict[str, Server]:
    servers, faults = {}, []
    for name, row in _table(raw).items():
        try:
            servers[name] = _server(row)
        except _Faulty as found:
            faults += [(".".join(filter(None, (name, key))), reason) for key, reason in found.faults]
    if faults:
        raise _Faulty(*faults)
    return servers


def _server(raw: object) -> Server:
    for key in _table(raw):
        if key not in Server.__struct_fields__:
            raise _Faulty((key, _unknown(key, Server.__struct_fields__)))
    try:
        server = msgspec.convert(raw, Server)
    except msgspec.ValidationError as error:
        reason, _, at = str(error).partition(" - at `$.")
        raise _Faulty((at.rstrip("`"), reason)) from None
    if bool(server.command) == bool(server.url):
        raise _Faulty(("", "a server has either a command or a url"))
    return server


_FIELDS: dict[str, tuple[Callable[[object], Any], Any]] = {
    "name": (_text, ""),
    "description": (_text, ""),
    "system_prompt": (_prompt, ""),
    "endpoint": (_word, ""),
    "model": (_models, ()),
    "fallback": (_word, ""),
    "tools": (_words, ()),
    "mcp": (_servers, {}),
    "features": (_features, ()),
    "output_schema": (_table, {}),
}


def _settings(table: Mapping[str, object], faults: list[Fault]) -> dict[str, Value]:
    """What the rest of the file sets: the layer ``app``."""
    rest = {key: value for key, value in table.items() if key not in _FIELDS}
    layers = Layers()
    given: set[str] = set()
    for key, raw in flatten(rest):
        setting = _SHORT.get(key, key)
        if key in _REFUSED:
            faults.append((key, _REFUSED[key]))
        elif setting not in KEYS and "." not in setting:
            faults.append((key, _unknown(key, _known())))
        elif setting in given:
            faults.append((key, "it is given twice"))
        else:
            given.add(setting)
            try:
                layers = layers.set("app", setting, raw)
            except SettingError as error:
                faults.append((key, "; ".join((reason_of(key, error), *error.next_actions))))
    return {entry.key: entry.value for entry in layers.entries}


def _known() -> list[str]:
    groups = dict.fromkeys(name.partition(".")[0] for name in KEYS)
    return [*_FIELDS, *_SHORT, *groups, PARAMS]


def _unknown(name: str, known: Collection[str]) -> str:
    close = difflib.get_close_matches(name.lower(), known, 2)
    hint = f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(known)}"
    return f"there is no such key; {hint}"


def _tool_faults(app: App) -> Iterator[Fault]:
    for at, tool in enumerate(app.tools):
        # a server that the file does not have may be one of the person's own: whoever opens the tools says
        if not tool.startswith(MCP) and tool not in BUILTIN_TOOLS:
            yield f"tools.{at}", f"{tool}: {_unknown(tool, (*BUILTIN_TOOLS, 'mcp:NAME'))}"


def _feature_faults(app: App) -> Iterator[Fault]:
    """Features that lack what they need, or that the app's own models refuse at the app's own effort."""
    if "structured_output" in app.features and not app.output_schema:
        yield "features.structured_output", "it needs the table [output_schema]"
    if app.output_schema and "structured_output" not in app.features:
        yield "output_schema", "nothing uses it: set structured_output in [features]"
    effort = str(app.settings.get("reasoning.effort", ""))
    for model in app.models:
        for row in violated(app.requested_features, app.endpoint, model, effort):
            yield "features", f"{' and '.join(row.features)} with {model}: {row.reason}; take {row.advice}"


def _with_effort(app: App) -> App:
    """The app with the usual effort of its first model, where its author says none and nothing is against it."""
    effort = usual_effort(app.default_model)
    if not effort or "reasoning.effort" in app.settings:
        return app
    if any(violated(app.requested_features, app.endpoint, model, effort) for model in app.models):
        return app
    return msgspec.structs.replace(app, settings={**app.settings, "reasoning.effort": effort})


def _refused(name: str, faults: list[Fault]) -> RuleFileError:
    told = [f"{key}: {reason}" if key else reason for key, reason in faults]
    said = told[0] if len(told) == 1 else "\n  ".join((f"{len(told)} faults", *told))
    return RuleFileError(
        f"{name}: {said}",
        details={"file": name, "key": faults[0][0], "reason": faults[0][1], "faults": faults},
    )
