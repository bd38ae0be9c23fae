"""Reads the text of a configuration file, and says everything that is wrong with it at once."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from thinkback.errors import RuleFileError
from thinkback.rules import Rulebook
from thinkback.servers.gateway.config.checking import KINDS, Fault, check, check_places, kind_of, quoted
from thinkback.servers.gateway.config.schema import Alias, Config, Upstream
from thinkback.settings.files import read_toml
from thinkback.settings.values import flatten

T = TypeVar("T", Config, Upstream, Alias)
KEY_WORDS = ("key", "api_key", "apikey", "token", "secret", "password")


def read_config(
    name: str,
    text: str,
    changes: Mapping[str, Mapping[str, object]] | None = None,
    rulebook: Rulebook | None = None,
) -> Config:
    """The configuration in ``text``, which stands in the file ``name``. ``changes`` lie over it: table to key to value.

    Endpoints that it names are looked up in ``rulebook``. Raises ``RuleFileError`` with all ``problems``.
    """
    table: dict[str, Any] = read_toml(name, text)
    for part, values in (changes or {}).items():
        mine = table.get(part, {})
        table[part] = {**mine, **values} if isinstance(mine, dict) else mine
    faults = list(faults_of(table))
    if not faults:
        config = msgspec.convert(table, Config)
        faults = [*check(config), *(check_places(config, rulebook) if rulebook else ())]
        if not faults:
            return _named(config)
    given = {f"{part}.{key}" for part, values in (changes or {}).items() for key in values}
    lines = "\n".join(f"  {fault}{' (given on the command line)' if fault.path in given else ''}" for fault in faults)
    how_many = "one problem" if len(faults) == 1 else f"{len(faults)} problems"
    raise RuleFileError(
        f"{name}: {how_many}\n{lines}", details={"file": name, "problems": [tuple(fault) for fault in faults]}
    )


def _named(config: Config) -> Config:
    """``config`` with its settings by their names: in TOML a dotted key makes tables."""

    def flat(table: T) -> T:
        return msgspec.structs.replace(table, settings=dict(flatten(table.settings)))

    upstreams = {name: flat(upstream) for name, upstream in config.upstreams.items()}
    models = {name: flat(alias) for name, alias in config.models.items()}
    return msgspec.structs.replace(flat(config), upstreams=upstreams, models=models)


def faults_of(table: Mapping[str, object]) -> Iterator[Fault]:
    """What of ``table`` is unknown, missing, or of the wrong kind."""
    return _faults(table, Config, "")


def fields(shape: type) -> dict[str, Any]:
    """Key to declared kind of a table."""
    return get_type_hints(shape, include_extras=True)


def _faults(value: object, shape: Any, path: str) -> Iterator[Fault]:
    """What in ``value`` is not of ``shape``, tables key by key."""
    if isinstance(shape, type) and issubclass(shape, msgspec.Struct):
        yield from _table_faults(value, shape, path)
        return
    origin, inner = get_origin(shape), get_args(shape)
    if origin is not None and issubclass_safe(origin, Mapping) and inner[1] is not object and isinstance(value, dict):
        for key, each in value.items():
            yield from _faults(each, inner[1], f"{path}.{quoted(key)}")
    elif origin is tuple and isinstance(value, list):
        for at, each in enumerate(value):
            yield from _faults(each, inner[0], f"{path}[{at}]")
    else:
        try:
            msgspec.convert(value, shape)
        except msgspec.ValidationError:
            yield Fault(path, kind_of(value), f"must be {wanted(shape)}")


def _table_faults(value: object, shape: type[msgspec.Struct], path: str) -> Iterator[Fault]:
    if not isinstance(value, dict):
        yield Fault(path, kind_of(value), "must be a table")
        return
    known = fields(shape)
    for key, each in value.items():
        place = f"{path}.{quoted(key)}" if path else quoted(key)
        if key in known:
            yield from _faults(each, known[key], place)
        else:
            yield Fault(place, "", _unknown(key, tuple(known)))
    for field in msgspec.structs.fields(shape):
        if field.required and field.name not in value:
            yield Fault(f"{path}.{field.name}", "", "is required")


def _unknown(key: str, known: tuple[str, ...]) -> str:
    if key.lower() in KEY_WORDS and "key_env" in known:
        return "a key never stands in this file: name its variable with key_env, or its file with key_file"
    close = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
    return f"there is no such key; did you mean {close[0]}?" if close else f"there is no such key: {', '.join(known)}"


def wanted(shape: Any) -> str:
    """What is allowed, for error texts and for the reference of the configuration."""
    origin, inner = get_origin(shape), get_args(shape)
    if origin is Literal:
        return " or ".join(f'"{word}"' for word in inner)
    if hasattr(shape, "__metadata__"):
        return f"{wanted(inner[0])}{''.join(map(_bounds, shape.__metadata__))}"
    if origin is tuple:
        return "a list of texts" if inner[0] is str else "a list of tables"
    if origin is not None and issubclass_safe(origin, Mapping):
        return "a table"
    if type(None) in inner:
        return wanted(Union[tuple(each for each in inner if each is not type(None))])  # noqa: UP007
    return KINDS.get(shape, "a table")


def _bounds(meta: msgspec.Meta) -> str:
    low = f" from {meta.ge:g}" if meta.ge is not None else f" over {meta.gt:g}" if meta.gt is not None else ""
    return low + (f" up to {_plain(meta.le)}" if meta.le is not None else "")


def _plain(number: float) -> str:
    return str(int(number)) if number == int(number) else str(number)


def issubclass_safe(kind: object, of: type) -> bool:
    """Whether ``kind`` is a class and one of ``of``."""
    return isinstance(kind, type) and issubclass(kind, of)
