"""Who set what: settings in layers, the later one wins.

``Layers`` is a value. Setting something gives new ``Layers``; what is invalid raises and the old ones are as they
were. Nothing is remembered between two calls of ``effective``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import msgspec

from thinkback import deprecations
from thinkback.errors import SettingError
from thinkback.model.target import Settings, merge, nested, without
from thinkback.settings.registry import DEFAULT, KEYS, PARAMS, ROWS, Value
from thinkback.settings.values import find, flatten, parse, to_json, to_text

Layer: TypeAlias = Literal["built-in", "endpoint", "user", "app", "profile", "session", "call"]

LAYERS: tuple[Layer, ...] = get_args(Layer)
WRITABLE = LAYERS[2:]
EXPLICIT = "explicit"
CARRY = "carry"
CLIENT, CLIENT_REASONS = "client", "client_reasons"
_INCLUDE = "reasoning.includeInContext"
# What a record says beside settings that have a name.
_UNNAMED = (CARRY, CLIENT, CLIENT_REASONS, EXPLICIT)


class SettingEntry(msgspec.Struct, frozen=True):
    """One value in one layer."""

    layer: Layer
    key: str
    value: Value


class SettingSource(NamedTuple):
    """The value in force and the layer that it comes from."""

    value: Value | None
    layer: Layer


_EFFECTIVE = "effective settings"


class Layers(msgspec.Struct, frozen=True, dict=True):
    """The layers a person can set, from ``user`` to ``call``. Equal settings are equal values."""

    entries: tuple[SettingEntry, ...] = ()

    def set(self, layer: Layer, key: str, value: object) -> Layers:
        """These layers with ``key`` set in ``layer``, from text or a Python value; ``SettingError`` if refused."""
        entry = SettingEntry(layer, find(key).name, _checked(layer, key, value))
        return Layers(_ordered((*self.unset(layer, key).entries, entry)))

    def unset(self, layer: Layer, key: str) -> Layers:
        """These layers without ``key`` in ``layer``, so that the layers below show through."""
        name = find(key).name
        return Layers(tuple(entry for entry in self.entries if (entry.layer, entry.key) != (layer, name)))

    def replace(self, layer: Layer, values: Mapping[str, object]) -> Layers:
        """These layers with the whole of ``layer`` replaced: how a file, a profile or a stored session is loaded."""
        read = tuple(SettingEntry(layer, find(key).name, _checked(layer, key, value)) for key, value in values.items())
        return Layers(_ordered((*(entry for entry in self.entries if entry.layer != layer), *read)))

    def texts(self, layer: Layer) -> dict[str, str]:
        """What ``layer`` holds, as text: how a profile or a session is saved; ``replace`` reads it back."""
        return {entry.key: _written(entry) for entry in self.entries if entry.layer == layer}

    def origin(self, key: str, endpoint_data: Mapping[str, object] = MappingProxyType({})) -> SettingSource:
        """The value of ``key`` in force and the layer it comes from, for help."""
        name = find(key).name
        return self._sources(endpoint_data).get(name, SettingSource(None, "built-in"))

    @property
    def keys(self) -> tuple[str, ...]:
        """Every key there is, and the request fields that are set."""
        own = dict.fromkeys(entry.key for entry in self.entries if entry.key not in KEYS)
        return (*KEYS, *own)

    def params(self) -> dict[str, Any]:
        """The request fields that the layers set, as one table: a stronger layer wins field by field."""
        merged: dict[str, Any] = {}
        for entry in self.entries:
            path = entry.key.removeprefix(f"{PARAMS}.")
            if path == entry.key:
                continue
            merged = without(merged, path)
            if entry.value != DEFAULT:
                merged = merge(merged, nested(path, entry.value))
        return merged

    def effective(self, endpoint_data: Mapping[str, object]) -> Settings:
        """What the next request goes by; ``endpoint_data`` is ``Endpoint.settings``, nested or with dotted keys.

        ``explicit`` gets the names of the keys set in a layer above the endpoint's. What an app keeps of reasoning is
        what every app carries, for no app can say it. Asked again with the same object, it is looked up.
        """
        known: tuple[Mapping[str, object], Settings] | None = self.__dict__.get(_EFFECTIVE)
        if known is None or known[0] is not endpoint_data:
            known = self.__dict__[_EFFECTIVE] = endpoint_data, self._effective(endpoint_data)
        return known[1]

    def _effective(self, endpoint_data: Mapping[str, object]) -> Settings:
        found = self._sources(endpoint_data)
        fields = {key.field: found[key.name].value for key in ROWS}
        explicit = [name for name, (_, layer) in found.items() if layer in WRITABLE and name in KEYS]
        carry = found["reasoning.keepLast"].layer == "app"
        params = self.params()
        said = {"explicit": explicit, "carry": carry, "params": json.dumps(params) if params else ""}
        return msgspec.convert({**fields, **said}, Settings)

    def carrying(self, responses: int) -> Layers:
        """These layers as those of an app: reasoning of the last ``responses`` goes along, unless the app asks for none
        or a stronger layer says how much is stripped.
        """
        strong = LAYERS[LAYERS.index("app") + 1 :]
        own: tuple[SettingEntry, ...] = ()
        if not any(entry.key == "reasoning.stripFromContext" and entry.layer in strong for entry in self.entries):
            own = (SettingEntry("app", "reasoning.keepLast", responses),)
        if not any(entry.key == _INCLUDE and entry.layer == "app" for entry in self.entries):
            own += (SettingEntry("app", _INCLUDE, True),)
        return Layers(_ordered((*self.entries, *own)))

    def _sources(self, endpoint_data: Mapping[str, object]) -> dict[str, SettingSource]:
        found = {key.name: SettingSource(key.default, "built-in") for key in ROWS}
        found |= {
            name: SettingSource(_resolve_default(name, parse(name, raw)), "endpoint")
            for name, raw in flatten(endpoint_data)
        }
        return found | {
            entry.key: SettingSource(_resolve_default(entry.key, entry.value), entry.layer) for entry in self.entries
        }


def snapshot(settings: Settings) -> dict[str, str]:
    """Effective settings as a request record stores them: unset keys are left out, and those that do not bear on
    requests; ``explicit`` is a list of names.
    """
    values = {key.name: getattr(settings, key.field) for key in ROWS if key.recorded}
    texts = {name: to_text(value) for name, value in values.items() if value is not None}
    if settings.carry:
        texts[CARRY] = to_text(value=True)
    if settings.client:
        texts[CLIENT] = settings.client
    if settings.client_reasons:
        texts[CLIENT_REASONS] = to_text(value=True)
    explicit = settings.explicit & values.keys()
    return {**texts, EXPLICIT: " ".join(sorted(explicit))} if explicit else texts


def restore(record: Mapping[str, str]) -> Settings:
    """The settings that ``snapshot`` wrote down, to recompute what was decided under them."""
    fields = {find(name).field: parse(name, text) for name, text in record.items() if name not in _UNNAMED}
    explicit = record.get(EXPLICIT, "").split()
    client = {"client": record.get(CLIENT, ""), "client_reasons": CLIENT_REASONS in record}
    return msgspec.convert({**fields, "explicit": explicit, "carry": CARRY in record, **client}, Settings)


def _resolve_default(key: str, value: Value) -> Value | None:
    """``value``, or what is built in where it says that weaker layers are not to speak."""
    return find(key).default if value == DEFAULT else value


def _written(entry: SettingEntry) -> str:
    return to_json(entry.value) if entry.key.startswith(f"{PARAMS}.") else to_text(entry.value)


def _checked(layer: Layer, name: str, raw: object) -> Value:
    deprecations.of_setting(name)
    value = parse(name, raw)
    if layer not in WRITABLE:
        raise SettingError(
            f"{name} cannot be set in the layer {layer}: layers that can be set are {', '.join(WRITABLE)}",
            details={"key": name, "value": raw, "layer": layer, "allowed": WRITABLE},
        )
    refused = find(name).refused_in
    if layer in refused:
        raise SettingError(
            f"{name} cannot be set in the layer {layer}",
            details={"key": name, "value": raw, "layer": layer, "allowed": ()},
            next_actions=[f"layers that may set it are {', '.join(one for one in WRITABLE if one not in refused)}"],
        )
    return value


def _ordered(entries: Iterable[SettingEntry]) -> tuple[SettingEntry, ...]:
    """Lowest layer first, within one in the order of the registry: later entries win, equal settings are equal."""
    at = {name: place for place, name in enumerate(KEYS)}
    return tuple(sorted(entries, key=lambda entry: (LAYERS.index(entry.layer), at.get(entry.key, len(at)), entry.key)))
