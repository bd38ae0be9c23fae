"""The configuration of a gateway: one TOML file in which every key is optional and every default is safe.

Owns the names, kinds and defaults of all keys, and what makes a file wrong. Promises: a file is refused with all of
its problems at once, each with its key path; a value is never quoted, since it may be a secret in the wrong place.
Must not: read files or the environment; a secret is a reference here (``env:NAME`` or ``file:PATH``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from thinkback.proxy.retention import Recording

Seconds = Annotated[float, Meta(gt=0, le=86_400)]
Hours = Annotated[float, Meta(gt=0, le=87_600)]
Count = Annotated[int, Meta(ge=1)]
MIB = 2**20


class Server(msgspec.Struct, frozen=True):
    """Where the gateway listens and what it takes. Sizes are bytes, times seconds."""

    host: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65_535)] = 8484
    workers: Annotated[int, Meta(ge=1, le=256)] = 1
    allowed_hosts: tuple[str, ...] = ()
    cors_origins: tuple[str, ...] = ()
    max_body: Annotated[int, Meta(ge=1024, le=2**31 - 1)] = 64 * MIB
    max_connections: Count = 2048
    header_timeout: Seconds = 10
    body_timeout: Seconds = 60
    write_timeout: Seconds = 60
    drain_delay: Annotated[float, Meta(ge=0, le=3600)] = 0
    drain_timeout: Seconds = 30
    no_auth: bool = False
    metrics_key: str = ""


class Store(msgspec.Struct, frozen=True):
    """Where conversations are kept: a directory, or a PostgreSQL. ``""`` is the user's data directory."""

    path: str = ""
    url: str = ""
    connections: Annotated[int, Meta(ge=1, le=1024)] = 8
    durability: Literal["full", "normal"] = "full"
    degraded: Literal["refuse", "pass"] = "refuse"
    spool: str = ""
    min_free: Annotated[int, Meta(ge=0, le=2**53)] = 64 * MIB


class Secrets(msgspec.Struct, frozen=True):
    """What seals the state that clients keep; ``previous`` still opens what was sealed before a change."""

    current: str = ""
    previous: str = ""


class KeyLimits(msgspec.Struct, frozen=True):
    """What each key may do that has no limits of its own; ``None`` is no limit."""

    per_minute: Count | None = None
    at_once: Count | None = None
    max_messages: Count = 20_000


class Timeouts(msgspec.Struct, frozen=True):
    """How long each phase of a request to an upstream may take."""

    connect: Seconds = 10
    first_byte: Seconds = 600
    idle: Seconds = 120
    total: Seconds = 3600


class Upstream(msgspec.Struct, frozen=True):
    """A place to send requests to: an endpoint of the catalogue, an address of one's own, or both.

    ``stored``: what becomes of requests of keys that name what the account there keeps (files, conversations).
    ``leaked_calls``: what becomes of calls that leak into reasoning, where the rule knows of it: they stay text, or are
    passed to the client as calls. ``settings`` hold for its requests where no alias says otherwise.
    ``credentials``: whose requests show: the gateway's own, or those of its client, who speaks its dialect.
    ``organisations``: of clients without a key of the gateway, those that may come, as the provider names them, and the
    tenant of each; ``None``: every one that the provider names.
    """

    endpoint: str = ""
    base_url: str = ""
    key_env: str = ""
    key_file: str = ""
    account: str = ""
    headers: Mapping[str, str] = {}
    proxy: str = ""
    stored: Literal["refuse", "pass"] = "refuse"
    leaked_calls: Literal["text", "pass"] = "text"
    settings: Mapping[str, object] = {}
    credentials: Literal["gateway", "client"] = "gateway"
    organisations: Mapping[str, str] | None = None

    @property
    def is_clients(self) -> bool:
        """Whether each client shows a credential of its own there."""
        return self.credentials == "client"


class To(msgspec.Struct, frozen=True):
    """One target of an alias; its share of the requests is ``weight`` of all weights."""

    upstream: str
    model: str
    weight: Annotated[float, Meta(ge=0, le=1_000_000)] = 1


class Alias(msgspec.Struct, frozen=True):
    """A model name of the gateway's own. ``fallbacks`` are other aliases, asked in order when no target answers."""

    targets: tuple[To, ...] = ()
    fallbacks: tuple[str, ...] = ()
    settings: Mapping[str, object] = {}


class Routing(msgspec.Struct, frozen=True):
    """``allow_catalogue``: clients may ask for ``endpoint/model`` without an alias.

    ``defaults`` has the upstream for each front that is asked for names which mean nothing else.
    """

    allow_catalogue: bool = True
    defaults: Mapping[str, str] = {}
    breaker_failures: Count = 5
    breaker_cooldown: Seconds = 30


class Records(msgspec.Struct, frozen=True):
    """What is kept of requests whose key does not say it, and for how many hours what expires is kept."""

    mode: Recording = "full"
    carriers_for: Hours = 24
    idempotency_for: Hours = 24


class Logs(msgspec.Struct, frozen=True):
    """``format``: ``auto`` is ``short`` on a terminal, else ``text``. ``audit``: the file of that log, or none."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["auto", "json", "text", "short"] = "auto"
    audit: str = ""


class Telemetry(msgspec.Struct, frozen=True):
    """OpenTelemetry; ``content``: spans carry what was said."""

    spans: bool = False
    content: bool = False


class Viewer(msgspec.Struct, frozen=True):
    """Where conversations can be looked at, with keys that have the right ``view``. ``listen`` is an address and a
    port; ``""``: nowhere.
    """

    listen: str = ""
    allowed_hosts: tuple[str, ...] = ()

    @property
    def server(self) -> Server:
        """A server that listens there; ``listen`` was checked, and is not empty."""
        host, _, port = self.listen.rpartition(":")
        return Server(host.strip("[]"), int(port), allowed_hosts=self.allowed_hosts)


class Config(msgspec.Struct, frozen=True):
    """All of it. ``settings`` hold for every request that nothing nearer says otherwise for."""

    server: Server = Server()
    store: Store = Store()
    secrets: Secrets = Secrets()
    limits: KeyLimits = KeyLimits()
    timeouts: Timeouts = Timeouts()
    upstreams: Mapping[str, Upstream] = {}
    models: Mapping[str, Alias] = {}
    routing: Routing = Routing()
    settings: Mapping[str, object] = {}
    recording: Records = Records()
    logs: Logs = Logs()
    telemetry: Telemetry = Telemetry()
    viewer: Viewer = Viewer()

    @property
    def of_clients(self) -> dict[str, Upstream]:
        """The upstreams to which clients show credentials of their own."""
        return {name: upstream for name, upstream in self.upstreams.items() if upstream.is_clients}
