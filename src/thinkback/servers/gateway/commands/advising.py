"""What a person is told of a configuration that is not wrong: where it leads, and what it names and is not there.

Must not: open or make anything, nor show a secret.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from importlib.util import find_spec

from thinkback.errors import CredentialError, ThinkbackError, install_hint
from thinkback.rules import Rulebook
from thinkback.rules.urls import is_loopback
from thinkback.servers.gateway.config.checking import open_to_strangers, quoted
from thinkback.servers.gateway.config.schema import Config, To, Upstream
from thinkback.servers.gateway.running.beside import PACKAGES as VIEWER
from thinkback.servers.gateway.running.places import state_place
from thinkback.servers.gateway.secrets.secret import read_key, read_secret
from thinkback.servers.gateway.upstreams.routing import authenticator_of, place_of
from thinkback.session.config import keys

CREATE_KEY = "`thinkback gateway keys create NAME` creates one"
_STAND_IN = " (referee/{} needs none: `thinkback referee` serves it)"


def describe(config: Config, rulebook: Rulebook) -> Iterator[str]:
    """Lines about what the gateway would do, those about what is missing among them."""
    server = config.server
    whom = "any local process" if server.no_auth else "clients with a key (`thinkback gateway keys list`)"
    reach = "" if is_loopback(server.host) else ", which other machines reach"
    yield f"serves {whom} at {server.host}:{server.port}{reach}"
    yield f"stores conversations in {kept_in(config)}"
    if config.viewer.listen:
        reach = "" if is_loopback(config.viewer.server.host) else ", which other machines reach"
        yield f"shows them to keys with the right to view at {config.viewer.listen}{reach}"
    for name, to in _places(config):
        yield f"{name}: {_trouble(config, rulebook, to) or 'ready'}"
    if config.routing.allow_catalogue and not config.upstreams:
        yield from keyed(rulebook)


def strangers(config: Config, rulebook: Rulebook) -> Iterator[str]:
    """A line for each upstream that serves people whom the operator may not know."""
    for name in open_to_strangers(config, rulebook):
        path = f"upstreams.{quoted(name)}"
        yield (
            f"{path}: other machines reach this gateway, and whoever has an account at the provider may use it; "
            f"{path}.organisations lists who may"
        )


def without_keys(config: Config) -> CredentialError:
    """The error of a gateway that other machines reach and that could let nobody in."""
    return CredentialError(
        f"the gateway would listen on {config.server.host}, which other machines can reach, and it has no keys",
        next_actions=(CREATE_KEY, "or listen on 127.0.0.1"),
    )


def kept_in(config: Config) -> str:
    """Where conversations are kept."""
    return "the database of store.url" if config.store.url else str(state_place(config.store))


def keyed(rulebook: Rulebook) -> Iterator[str]:
    """A line with the endpoints that have a key, and what adds one; none where the key file cannot be read."""
    try:
        found = [row.id for row in rulebook.endpoints() if keys.places(row.auth.env).keys() & set(row.auth.env)]
    except ThinkbackError:  # ``inspecting`` reports the key file
        return
    keyless = "" if found else "".join(_STAND_IN.format(model) for model in rulebook.served("referee")[:1])
    names = ", ".join(found) or "none"
    yield f"endpoints with a key, for models ENDPOINT/MODEL: {names}{keyless}; `thinkback keys set ENDPOINT` adds one"


def absent(config: Config, environment: Mapping[str, str] = os.environ) -> Iterator[str]:
    """Packages and secrets without which the gateway does not start, each with its key path."""
    secrets = config.secrets
    extra_of_viewer = next((name for name in VIEWER if find_spec(name) is None), VIEWER[0])
    for path, asked, package, extra in (
        ("telemetry.spans", config.telemetry.spans, "opentelemetry", "otel"),
        ("store.url", bool(config.store.url), "psycopg", "postgres"),
        ("viewer.listen", bool(config.viewer.listen), extra_of_viewer, "viewer"),
    ):
        if asked and find_spec(package) is None:
            yield f"{path}: needs a package that is not installed; {install_hint(extra)}"
    for path, value, read in (
        ("server.metrics_key", config.server.metrics_key, read_key),
        ("store.url", config.store.url, lambda _, environment: state_place(config.store, environment)),
        ("secrets.current", secrets.current, read_secret),
        ("secrets.previous", secrets.previous, read_secret),
    ):
        try:
            if value:
                read(value, environment)
        except CredentialError as error:
            yield f"{path}: {error.message}"


def _places(config: Config) -> Iterator[tuple[str, To]]:
    """What it is called, and the target, of every upstream and of every target of an alias."""
    for name in config.upstreams:
        yield f"upstream {quoted(name)}", To(name, "")
    for name, alias in config.models.items():
        for to in alias.targets:
            yield f"model {quoted(name)} at {to.upstream}/{to.model}", to


def _trouble(config: Config, rulebook: Rulebook, to: To) -> str:
    """Why ``to`` cannot be asked, and what helps; empty where it can."""
    try:
        upstream = config.upstreams.get(to.upstream) or Upstream(endpoint=to.upstream)
        place = place_of(upstream, to.model)
        if to.model:
            place.target(rulebook)
        authenticator_of(upstream, place, rulebook)
    except ThinkbackError as error:
        return "; ".join((error.message, *error.next_actions[:1]))
    return ""
