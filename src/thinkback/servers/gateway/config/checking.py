"""What makes a configuration wrong although each of its values is of the right kind."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple, Protocol
from urllib.parse import urlsplit

from thinkback.errors import NotFoundError, SettingError, ThinkbackError
from thinkback.model.rule import Endpoint
from thinkback.proxy.headers import HOP_BY_HOP, is_name, is_value
from thinkback.rules import Rulebook
from thinkback.rules.urls import is_loopback, normalise_url
from thinkback.servers.gateway.config import naming
from thinkback.servers.gateway.config.naming import UNSERVED
from thinkback.servers.gateway.config.schema import Alias, Config, Server, Store, Upstream
from thinkback.servers.gateway.grant import check_tenant
from thinkback.settings.registry import PARAMS
from thinkback.settings.values import flatten, parse, quote
from thinkback.turn.credentials import CREDENTIALS
from thinkback.wire.registry import FRONTS

REFERENCE = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*|file:.+", re.DOTALL)
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
LISTENS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):(\d{1,5})")
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")


class EndpointRows(Protocol):
    """Knows endpoints by name and by address."""

    def endpoint(self, name: str) -> Endpoint: ...

    def endpoint_for_url(self, base_url: str) -> Endpoint: ...


KINDS: Mapping[type, str] = {
    str: "text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    list: "a list",
    tuple: "a list",
    dict: "a table",
}


class Fault(NamedTuple):
    """One thing that is wrong. ``kind`` says what stands there, ``""`` where that is not the trouble."""

    path: str
    kind: str
    reason: str

    def __str__(self) -> str:
        found = f" ({self.kind} stands here)" if self.kind else ""
        return f"{self.path}: {self.reason}{found}"


def check(config: Config) -> Iterator[Fault]:
    """Everything that is wrong with ``config`` as a whole."""
    yield from _server(config.server)
    yield from _store(config.store, config.secrets.current)
    for name, value in (("current", config.secrets.current), ("previous", config.secrets.previous)):
        yield from _reference(f"secrets.{name}", value)
    for name, upstream in config.upstreams.items():
        yield from _upstream(f"upstreams.{quoted(name)}", upstream)
    for name, alias in config.models.items():
        yield from _alias(f"models.{quoted(name)}", name, alias, config)
    for front in config.routing.defaults.keys() - set(FRONTS):
        yield Fault(f"routing.defaults.{quoted(front)}", "", f"is not a front; use one of: {', '.join(FRONTS)}")
    yield from _settings("settings", config.settings)
    yield from _viewer(config)


def check_places(config: Config, rulebook: Rulebook) -> Iterator[Fault]:
    """Endpoints that ``config`` names and ``rulebook`` does not know."""
    for name, upstream in config.upstreams.items():
        if upstream.endpoint:
            yield from _place(f"upstreams.{quoted(name)}.endpoint", upstream.endpoint, rulebook, "endpoint")
    yield from _own(config, rulebook)
    for name, alias in config.models.items():
        for at, target in enumerate(alias.targets):
            if target.upstream not in config.upstreams:
                where = f"models.{quoted(name)}.targets[{at}].upstream"
                yield from _place(where, target.upstream, rulebook, "upstream of this file and no endpoint")
    for front, usual in config.routing.defaults.items():
        if usual not in config.upstreams:
            where = f"routing.defaults.{front}"
            yield from _place(where, usual, rulebook, "upstream of this file and no endpoint")


def _own(config: Config, rulebook: Rulebook) -> Iterator[Fault]:
    """Two places that take clients' own credentials in one dialect: nobody could tell which a credential is for."""
    seen: dict[str, str] = {}
    for name, upstream in config.of_clients.items():
        try:
            endpoint = endpoint_of(upstream, rulebook)
        except ThinkbackError:  # reported with its own path
            continue
        where = f"upstreams.{quoted(name)}.credentials"
        if endpoint.auth.scheme not in ("bearer", "header"):
            yield Fault(where, "", f"{endpoint.id} takes no key that a client could send: use the gateway's own")
        if endpoint.dialect in seen:
            other = f"upstreams.{quoted(seen[endpoint.dialect])}"
            yield Fault(where, "", f"{other} takes clients' credentials of the same dialect, {endpoint.dialect}")
        seen.setdefault(endpoint.dialect, name)
        if upstream.organisations and not endpoint.auth.principal:
            where = f"upstreams.{quoted(name)}.organisations"
            yield Fault(
                where, "", f"responses of {endpoint.id} name no organisation: its clients need keys of the gateway"
            )


def open_to_strangers(config: Config, rulebook: EndpointRows) -> Iterator[str]:
    """The upstreams that serve everybody whom their provider knows, on a gateway that other machines reach."""
    if not is_reached(config.server):
        return
    for name, upstream in config.of_clients.items():
        if upstream.organisations is None and endpoint_of(upstream, rulebook).auth.principal:
            yield name


def endpoint_of(upstream: Upstream, rulebook: EndpointRows) -> Endpoint:
    """The data of a place. Raises ``NotFoundError``."""
    return rulebook.endpoint(upstream.endpoint) if upstream.endpoint else rulebook.endpoint_for_url(upstream.base_url)


def _place(path: str, name: str, rulebook: Rulebook, what: str) -> Iterator[Fault]:
    try:
        rulebook.endpoint(name)
    except NotFoundError as error:
        yield Fault(path, "", f"there is no {what} of this name; {error.next_actions[0]}")


def is_reached(server: Server) -> bool:
    """Whether other machines reach a gateway, by its address or through a proxy that speaks for it."""
    names = (re.sub(r":\d+$", "", host) for host in server.allowed_hosts)
    return not (is_loopback(server.host) and all(map(is_loopback, names)))


def kind_of(value: object) -> str:
    """What ``value`` is, for an error text; never the value."""
    return KINDS.get(type(value), "a date or time")


def quoted(key: str) -> str:
    """A key as it is written in a key path: with quotation marks where it has other letters than a bare key."""
    bare = key.replace("_", "").replace("-", "")
    return key if bare.isalnum() and bare.isascii() else f'"{key[:60]}"'


def _server(server: Server) -> Iterator[Fault]:
    if not server.host:
        yield Fault("server.host", "", "name an address; 0.0.0.0 is all of this machine's")
    if server.no_auth and not is_loopback(server.host):
        yield Fault("server.no_auth", "", "requests without a key are served on loopback alone (127.0.0.1 or ::1)")
    yield from _hosts("server.allowed_hosts", server.allowed_hosts)
    for at, origin in enumerate(server.cors_origins):
        if not re.fullmatch(r"https?://[A-Za-z0-9._\[\]:-]+", origin):
            yield Fault(f"server.cors_origins[{at}]", "", "must be an origin such as https://chat.example, whole")
    yield from _reference("server.metrics_key", server.metrics_key)


def _hosts(path: str, hosts: tuple[str, ...]) -> Iterator[Fault]:
    for at, host in enumerate(hosts):
        if not re.fullmatch(r"\*|[A-Za-z0-9._-]+(:\d+)?|\[[0-9A-Fa-f:.]+\](:\d+)?", host):
            yield Fault(f"{path}[{at}]", "", "must be a host name, with a port or without, or *")


def _viewer(config: Config) -> Iterator[Fault]:
    listens = LISTENS.fullmatch(config.viewer.listen)
    if config.viewer.listen and (listens is None or int(listens[2]) > 65_535):
        yield Fault("viewer.listen", "", "must be an address with a port, such as 127.0.0.1:8485")
    elif config.viewer.listen:
        place, server = config.viewer.server, config.server
        if place.port and (place.host, place.port) == (server.host.strip("[]"), server.port):
            yield Fault("viewer.listen", "", "is where the gateway itself listens: choose another port")
    yield from _hosts("viewer.allowed_hosts", config.viewer.allowed_hosts)


def _store(store: Store, secret: str) -> Iterator[Fault]:
    if store.url and store.path:
        yield Fault("store.url", "", "a log is in a directory or in a database: leave path out, or url")
    if store.url and not REFERENCE.fullmatch(store.url):
        yield from _database(store.url)
    if store.url and not secret:
        yield Fault("secrets.current", "", "is required with store.url: every process must seal with the same secret")


def _database(url: str) -> Iterator[Fault]:
    try:
        parts = urlsplit(url)
        password = parts.password is not None or "password=" in parts.query
    except ValueError:
        yield Fault("store.url", "", "is not an address")
        return
    if parts.scheme not in ("postgresql", "postgres"):
        yield Fault("store.url", "", "must begin with postgresql://, or be env:NAME or file:PATH")
    if password:
        yield Fault("store.url", "", "a password never stands in this file: give the address as env:NAME or file:PATH")


def _reference(path: str, value: str) -> Iterator[Fault]:
    if value and not REFERENCE.fullmatch(value):
        yield Fault(path, "", "a secret never stands in this file: write env:NAME or file:PATH")


def _upstream(path: str, upstream: Upstream) -> Iterator[Fault]:
    if not upstream.endpoint and not upstream.base_url:
        yield Fault(path, "", "name an endpoint of the catalogue, or a base_url")
    if upstream.key_env and upstream.key_file:
        yield Fault(f"{path}.key_file", "", "the key is in a variable or in a file: leave key_env out, or key_file")
    if upstream.key_env and not VARIABLE.fullmatch(upstream.key_env):
        yield Fault(f"{path}.key_env", "", "must be the name of an environment variable, never the key")
    if upstream.is_clients:
        named = [key for key in ("key_env", "key_file", "account") if getattr(upstream, key)]
        named += [f"headers.{quoted(name)}" for name in upstream.headers if name.lower() in CREDENTIALS]
        for key in named:
            yield Fault(f"{path}.{key}", "", "is the client's, with credentials = client: leave it out")
    elif upstream.organisations is not None:
        yield Fault(
            f"{path}.organisations", "", "is for clients' own credentials: set credentials = client, or leave it out"
        )
    for organisation, tenant in (upstream.organisations or {}).items():
        try:
            check_tenant(tenant)
        except SettingError as error:
            yield Fault(f"{path}.organisations.{quoted(organisation)}", "", "; ".join(error.next_actions))
    for key, url in (("base_url", upstream.base_url), ("proxy", upstream.proxy)):
        try:
            if url:
                normalise_url(url)
        except SettingError as error:
            yield Fault(f"{path}.{key}", "", error.message)
    for name, value in upstream.headers.items():
        yield from _header(f"{path}.headers.{quoted(name)}", name.lower(), value)
    yield from _settings(f"{path}.settings", upstream.settings)


def _header(path: str, name: str, value: str) -> Iterator[Fault]:
    if not is_name(name) or not is_value(value):
        yield Fault(path, "", "is not a header that may be sent")
    elif name in HOP_BY_HOP:
        yield Fault(path, "", "is a hop-by-hop header, which the gateway sets itself")
    elif name in CREDENTIALS and not REFERENCE.fullmatch(value):
        yield Fault(path, "", "a credential never stands in this file: write env:NAME or file:PATH")


def _alias(path: str, name: str, alias: Alias, config: Config) -> Iterator[Fault]:
    if not alias.targets and not alias.fallbacks:
        yield Fault(path, "", "has neither targets nor fallbacks")
    if alias.targets and not any(target.weight for target in alias.targets):
        yield Fault(f"{path}.targets", "", "no target has a weight, so none would be used")
    for at, target in enumerate(alias.targets):
        for key, word in (("upstream", target.upstream), ("model", target.model)):
            if not word:
                yield Fault(f"{path}.targets[{at}].{key}", "", "is empty")
    for at, fallback in enumerate(alias.fallbacks):
        if fallback not in config.models:
            yield Fault(f"{path}.fallbacks[{at}]", "", "there is no alias of this name under [models]")
        elif name in _reached(fallback, config.models):
            yield Fault(f"{path}.fallbacks[{at}]", "", "leads back to this alias")
    for behind, reason in naming.faults(name, alias):
        yield Fault(f"{path}{behind}", "", reason)
    yield from _settings(f"{path}.settings", alias.settings)


def _reached(name: str, models: Mapping[str, Alias]) -> set[str]:
    """The aliases that ``name`` falls back to, itself among them."""
    seen: set[str] = set()
    ahead = [name]
    while ahead:
        here = ahead.pop()
        if here in models and here not in seen:
            seen.add(here)
            ahead.extend(models[here].fallbacks)
    return seen


def _settings(path: str, table: Mapping[str, object]) -> Iterator[Fault]:
    for key, value in flatten(table):
        if key.startswith(f"{PARAMS}."):
            yield Fault(f"{path}.{quoted(key)}", kind_of(value), "clients of a gateway set request fields themselves")
            continue
        if key in UNSERVED:
            yield Fault(f"{path}.{quoted(key)}", "", f"has no effect in a gateway: {UNSERVED[key]}")
            continue
        try:
            parse(key, value)
        except SettingError as error:
            allowed = error.details.get("allowed", ())
            words = ", ".join(map(str, allowed)) if isinstance(allowed, tuple) else ""
            told = f"there is no such setting; {'; '.join(error.next_actions)}"
            yield Fault(f"{path}.{quoted(key)}", "", f"cannot be {quote(value)} (allowed: {words})" if words else told)
