"""The settings of one request: those of the gateway, of the alias, of the key, and of the request itself, in layers."""

from __future__ import annotations

from collections.abc import Mapping

from thinkback.errors import SettingError
from thinkback.model.target import Settings
from thinkback.servers.gateway.config.naming import UNSERVED
from thinkback.settings import Layers

HEADER = "thinkback-set"
# A client says what goes into its own context: nothing is summarised behind its back.
_OURS: Mapping[str, object] = {"compaction.auto": False}
# Beside reasoning, what a client may say of its request.
_BY_CLIENTS = ("reasoning.", "text.", "context.")
_KEPT = 256


class Effective:
    """The settings in force, worked out once for as long as everybody says the same."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int, int, int, str], tuple[object, Settings]] = {}

    def of(
        self,
        gateway: Mapping[str, object],
        alias: Mapping[str, object],
        key: Mapping[str, object],
        headers: Mapping[str, str],
        endpoint: Mapping[str, object],
    ) -> Settings:
        """What a request goes by; ``endpoint`` is what its data says. Nobody may change what was given.

        Raises ``SettingError``.
        """
        at = (id(gateway), id(alias), id(key), id(endpoint), headers.get(HEADER, ""))
        found = self._known.get(at)
        if found is None:
            if len(self._known) >= _KEPT:
                self._known.clear()
            settings = layers_of(gateway, alias, key, headers).effective(endpoint)
            # with what it is of, so that nothing else can have its identities
            found = self._known[at] = ((gateway, alias, key, endpoint), settings)
        return found[1]


def layers_of(
    gateway: Mapping[str, object], alias: Mapping[str, object], key: Mapping[str, object], headers: Mapping[str, str]
) -> Layers:
    """The layers from the gateway's (weakest) to the request's ``Thinkback-Set`` header. Raises ``SettingError``."""
    layers = Layers().replace("user", {**_OURS, **gateway})
    layers = layers.replace("profile", alias).replace("session", key)
    return layers.replace("call", said_in(headers))


def said_in(headers: Mapping[str, str]) -> dict[str, object]:
    """What the header says: ``reasoning.effort=high, reasoning.includeInContext=true``. Raises ``SettingError``."""
    said: dict[str, object] = {}
    for part in headers.get(HEADER, "").split(","):
        name, given, value = (piece.strip() for piece in part.partition("="))
        if not name:
            continue
        if not given or not name.startswith(_BY_CLIENTS):
            raise SettingError(
                f"{HEADER}: {name!r} is not a setting that a request may change",
                details={"key": name},
                next_actions=("write it as reasoning.effort=high, several separated by commas",),
            )
        if name in UNSERVED:
            raise SettingError(f"{HEADER}: {name} has no effect in a gateway: {UNSERVED[name]}", details={"key": name})
        said[name] = value
    return said
