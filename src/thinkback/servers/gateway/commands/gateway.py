"""``thinkback gateway``: serve, check a configuration, print the one in force; ``keys`` is a command under it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from thinkback.servers.gateway.commands.backup import backup_command
from thinkback.servers.gateway.commands.keys import completed, keys_group, say

if TYPE_CHECKING:
    from thinkback.servers.gateway.config.schema import Config
    from thinkback.servers.gateway.running.server import Start

PACKAGES = ("aiohappyeyeballs", "cryptography", "httptools", "uvicorn")


@click.group("gateway", short_help="Serve API clients; send back the reasoning they drop.", invoke_without_command=True)
@click.option(
    "--config",
    metavar="FILE",
    default="",
    help="Configuration file; default: gateway.toml in the configuration directory.",
)
@click.option("--host", metavar="ADDRESS", help="The address to listen on; default: 127.0.0.1.")
@click.option(
    "--port", metavar="NUMBER", type=click.IntRange(0, 65535), help="The port; 0 picks a free one; default: 8484."
)
@click.option("--no-auth", is_flag=True, help="Require no key from clients; only on a loopback address.")
@click.option("--store", metavar="PLACE", help="Store of the conversations: a directory or postgresql://...")
@click.option(
    "--workers", metavar="NUMBER", type=click.IntRange(1, 256), help="Number of serving processes; default: 1."
)
@click.option("--check", is_flag=True, help="Check configuration, store, disk, spool and clock; exit with 0, 1 or 2.")
@click.option("--print-config", is_flag=True, help="Print the configuration in force, and exit.")
@click.pass_context
def gateway_command(context: click.Context, /, check: bool, print_config: bool, **given: Any) -> None:
    """Serve clients of the OpenAI, Anthropic and Gemini APIs, and send back the reasoning that they drop.

    Point a client's base URL at the gateway: http://127.0.0.1:8484/v1 for OpenAI's, http://127.0.0.1:8484 for the
    others. A model is named by an alias of the configuration, or as ENDPOINT/MODEL. SIGHUP reloads the configuration.
    SIGTERM stops the gateway after open responses have ended.
    """
    if context.invoked_subcommand is not None:
        return
    _check_packages()
    start = _start(given)
    config = start.config()
    if print_config:
        _print(config)
    elif check:
        context.exit(_check(start, config))
    else:
        context.exit(_serve(start, config))


gateway_command.add_command(backup_command)
gateway_command.add_command(keys_group)


def _check_packages() -> None:
    from thinkback.errors import MissingPackageError, install_hint

    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingPackageError(
            f"the gateway needs packages that are not installed: {', '.join(missing)}",
            details={"package": missing[0], "extra": "gateway"},
            next_actions=(install_hint("gateway"),),
        )


def _start(given: dict[str, Any]) -> Start:
    """What the options lay over the file."""
    from thinkback.servers.gateway.running.places import NAME
    from thinkback.servers.gateway.running.server import Start
    from thinkback.session.config import config_dir
    from thinkback.stores import SERVER

    usual = config_dir() / NAME
    file = str(Path(given["config"]).expanduser()) if given["config"] else str(usual) if usual.is_file() else ""
    server = {name: given[name] for name in ("host", "port", "workers") if given[name] is not None}
    if given["no_auth"]:
        server["no_auth"] = True
    store: dict[str, str] = {}
    if given["store"]:
        is_url = given["store"].startswith((*SERVER, "env:", "file:"))
        store = {"url": given["store"], "path": ""} if is_url else {"path": given["store"], "url": ""}
    return Start(file, {**({"server": server} if server else {}), **({"store": store} if store else {})})


def _check(start: Start, config: Config) -> int:
    """Say where the configuration leads and what is there: 2 where the gateway would not start, 1 where it would and
    something needs a person.
    """
    from thinkback.servers.gateway.commands.advising import absent, describe, strangers
    from thinkback.servers.gateway.commands.inspecting import ATTENTION, STOPS, Finding, inspect
    from thinkback.servers.gateway.running.places import NAME
    from thinkback.session.config import config_dir
    from thinkback.session.config import rulebook as user_rulebook

    findings = [Finding(STOPS, line) for line in absent(config)]
    found = "something that it names is not there" if findings else "nothing is wrong"
    if not findings:
        findings += (Finding(ATTENTION, line) for line in strangers(config, user_rulebook()))
        findings += inspect(config)
        worst = max((finding.level for finding in findings), default=0)
        found = {STOPS: "the gateway would not start", ATTENTION: "something needs attention"}.get(worst, found)
    say(f"{start.file or f'no {config_dir() / NAME}, so the defaults apply'}: {found}")
    for line in describe(config, user_rulebook()):
        say(f"  {completed(line)}")
    for finding in findings:
        if finding.level == STOPS:
            say(completed(f"it would not start: {finding.text}"), err=True)
        elif finding.level == ATTENTION:
            say(f"look at this: {finding.text}", err=True)
        else:
            say(f"  {finding.text}")
    return max((finding.level for finding in findings), default=0)


def _print(config: Config) -> None:
    import msgspec
    import tomlkit

    tables = msgspec.to_builtins(config)
    click.echo(tomlkit.dumps(_without_none(tables)), nl=False)


def _without_none(table: dict[str, Any]) -> dict[str, Any]:
    """TOML has no word for nothing."""
    return {
        key: _without_none(value) if isinstance(value, dict) else value
        for key, value in table.items()
        if value is not None
    }


def _serve(start: Start, config: Config) -> int:
    from thinkback.servers.gateway.commands.advising import kept_in, keyed, strangers
    from thinkback.servers.gateway.http.listening import address_of, bind
    from thinkback.servers.gateway.running import beside, server, workers
    from thinkback.servers.gateway.upstreams.routing import without_key
    from thinkback.session.config import rulebook as user_rulebook

    advice, kept = _check_keys(config), kept_in(config)
    has_routes = config.upstreams or not config.routing.allow_catalogue
    endpoints = [] if has_routes else list(keyed(user_rulebook()))
    keyless = without_key(config, user_rulebook())
    warnings = [f"look at this: {line}" for line in strangers(config, user_rulebook())]
    sock = bind(config.server)
    url = address_of(sock)

    def ready() -> None:
        say(f"The gateway serves at {url}; Ctrl-C ends it.")
        say(f"  OpenAI clients: {url}/v1")
        say(f"  Anthropic and Gemini clients: {url}")
        if viewer:
            say(completed(f"  viewer, for {_viewers(config)}: {viewer}"))
        if advice:
            say(advice)
        for name, error in keyless.items():
            say(f"  upstream {name}: {'; '.join((error.message, *error.next_actions[:1]))}")
        for line in warnings:
            say(line, err=True)
        for line in (*endpoints, f"stores conversations in {kept}"):
            say(completed(f"  {line}"))

    with beside.viewer(config) as viewer:
        if config.server.workers > 1:
            return workers.supervise(start, config, sock, ready)
        return server.run(start, config, sock, server.ALONE, ready)


def _viewers(config: Config) -> str:
    """Who can sign in to the viewer."""
    from thinkback.servers.gateway.access.keys import grant_of
    from thinkback.servers.gateway.running.places import office_of

    office = office_of(config)
    try:
        if any(row.revoked is None and grant_of(row).view for row in office.keys.list()):
            return "keys with the right to view"
    finally:
        office.close()
    return "nobody yet, as no key has the right to view (`thinkback gateway keys create NAME --view` creates one)"


def _check_keys(config: Config) -> str:
    """What is to be said of keys. Raises ``CredentialError`` where others could ask and nobody could be let in."""
    from thinkback.rules.urls import is_loopback
    from thinkback.servers.gateway.commands.advising import CREATE_KEY, without_keys
    from thinkback.servers.gateway.running.places import office_of

    if config.server.no_auth:
        return "Authentication is off: any local process can use the gateway."
    if config.of_clients:
        return ""
    office = office_of(config)
    try:
        if any(row.revoked is None for row in office.keys.list()):
            return ""
    finally:
        office.close()
    if not is_loopback(config.server.host):
        raise without_keys(config)
    return completed(f"There are no keys yet, so every request is refused: {CREATE_KEY}, or start with --no-auth.")
