"""``endpoints``: the places thinkback knows, whether a key is set for each, and the rule row in force."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from thinkback.cli import complete, terminal
from thinkback.cli.decisions import NO_PAGE, is_public
from thinkback.cli.options import DIALECTS, json_option
from thinkback.errors import CredentialError, NotFoundError, RuleFileError

if TYPE_CHECKING:
    from thinkback.model.rule import Endpoint, ModelInfo, Rule

# What is signed in to where there is no key.
_SIGN_INS = {"sigv4": "AWS", "google": "Google", "azure": "Azure"}
# What the request carries, by authentication scheme.
_SCHEMES = {
    "bearer": "bearer token",
    "header": "key in a header",
    "query": "key in the address",
    "sigv4": "AWS signature",
    "google": "Google access token",
    "azure": "key or Microsoft Entra token",
    "none": "no authentication",
}
# How a key is told of, by its place.
_STANDS = {"environment": " is set", "file": ", stored in the key file", "keyring": ", stored in the keyring"}
# Of those without a key: what they want instead.
_GROUPS = {
    "sign-in": "With a sign-in of your cloud account, or a key",
    "none": "Without a key, most on your own machine",
    "missing": "With a key that is not set",
}
_WAYS = (
    "`thinkback endpoints ID` shows one; `thinkback endpoints WORD` lists those with WORD in their name, "
    "`thinkback endpoints --all` every one"
)
# Tables of a row's controls that say of each word what is sent for it.
_OF_WORDS = frozenset({"effort", "display", "display_with_tools", "display_headers", "summary", "verbosity"})
_HELP = f"""\
List the endpoints that have a key, and name the others; with --all, list each with dialect, address and authentication.
With ID, show the rule row for --model and its source; with another word, list the endpoints that it is a part of.

Keys are never printed, only whether there is one: in the environment, in the key file or in the keyring.

{DIALECTS}
"""


@click.command("endpoints", short_help="List the endpoints, or show one and its rule row.", help=_HELP)
@click.argument("id", required=False, metavar="[ID | WORD]", shell_complete=complete.endpoints)
@click.option(
    "--model",
    shell_complete=complete.models,
    metavar="NAME",
    default="",
    help="Show the rule row of this model; needs ID.",
)
@click.option("--all", "everything", is_flag=True, help="List every endpoint in full.")
@json_option
def endpoints_command(id: str | None, model: str, everything: bool, as_json: bool) -> None:
    """List, or show one."""
    from thinkback.session import config

    book = config.rulebook()
    if id is None:
        if model:
            raise click.UsageError("--model needs the ID of an endpoint")
        if as_json:
            found = _keys(book.endpoints())
            terminal.print_json([_endpoint_json(endpoint, found) for endpoint in _by_id(book.endpoints())])
        else:
            print_endpoints(book.endpoints(), everything=everything)
            if not everything:
                terminal.out(terminal.wrap(_WAYS))
        return
    try:
        endpoint = book.endpoint(id)
    except NotFoundError:
        named = [] if as_json or model else [each for each in book.endpoints() if _has(each, id.lower())]
        if not named:
            raise
        print_endpoints(named, everything=True)
        return
    rule, guessed = book.rule_for(endpoint.id, model, config.today())
    info = book.model_info(endpoint.id, model, config.today())
    if as_json:
        terminal.print_json(_detail_json(endpoint, rule, guessed, info))
    else:
        _print_detail(endpoint, rule, guessed, info, model)


def _by_id(endpoints: Iterable[Endpoint]) -> list[Endpoint]:
    return sorted(endpoints, key=lambda endpoint: endpoint.id)


def _has(endpoint: Endpoint, word: str) -> bool:
    return any(word in each.lower() for each in (endpoint.id, endpoint.name, *endpoint.aliases))


def print_endpoints(listed: Iterable[Endpoint], *, everything: bool) -> None:
    """Two lines for each, those with a key first: how it is called and whether a key is set, what it speaks and where.
    Not ``everything``: of those without a key the ids.
    """
    pen, listed = terminal.pen(sys.stdout), _by_id(listed)
    keys = _keys(listed)
    groups: dict[str, list[Endpoint]] = {"key": [], "sign-in": [], "none": [], "missing": []}
    for endpoint in listed:
        groups[_group(endpoint, keys)].append(endpoint)
    shown = [each for found in groups.values() for each in found] if everything else groups["key"]
    width = max((len(endpoint.id) for endpoint in shown), default=0)
    for endpoint in shown:
        key = pen(_key_text(endpoint, keys), "green" if _key_of(endpoint, keys) else "dim")
        terminal.out(f"{pen(terminal.pad(endpoint.id, width), 'bold')}  {endpoint.name}; {key}")
        address = endpoint.base_url or "(give --base-url)"
        terminal.out(pen(f"{'':{width}}  {endpoint.dialect}, {_SCHEMES[endpoint.auth.scheme]}: {address}", "dim"))
    if everything:
        return
    if not shown:
        terminal.out("No endpoint has a key: `thinkback keys set ENDPOINT` stores one.")
    for group, what in _GROUPS.items():
        if groups[group]:
            terminal.out(f"{what}:")
            terminal.out(pen(terminal.wrap(", ".join(endpoint.id for endpoint in groups[group]), 2), "dim"))


def _keys(endpoints: Iterable[Endpoint]) -> Mapping[str, str]:
    """Where the keys are that there are, by name. A key file that cannot be used is told of, and has none."""
    from thinkback.session.config import keys

    names = list(dict.fromkeys(name for endpoint in endpoints for name in endpoint.auth.env))
    try:
        return keys.places(names)
    except (CredentialError, RuleFileError) as error:
        terminal.note(str(error))
        return {name: "environment" for name in names if os.environ.get(name, "").strip()}


def _group(endpoint: Endpoint, keys: Mapping[str, str]) -> str:
    """Whether it has a key, and if not, whether one is needed."""
    if _key_of(endpoint, keys):
        return "key"
    if endpoint.auth.scheme in _SIGN_INS:
        return "sign-in"
    return "none" if endpoint.auth.scheme == "none" or endpoint.auth.optional else "missing"


def _key_of(endpoint: Endpoint, keys: Mapping[str, str]) -> str:
    """The name of its key; empty where it has none."""
    return next((name for name in endpoint.auth.env if name in keys), "")


def _key_text(endpoint: Endpoint, keys: Mapping[str, str]) -> str:
    if endpoint.auth.scheme == "none":
        return "no key needed"
    name = _key_of(endpoint, keys)
    names = " or ".join(endpoint.auth.env)
    if name:
        return f"key: {name}{_STANDS[keys[name]]}"
    sign_in = _SIGN_INS.get(endpoint.auth.scheme)
    needed = f"not set: signs in to {sign_in}" if sign_in else "optional" if endpoint.auth.optional else "not set"
    return f"key: {names} ({needed})" if names else "key: --key-env NAME, if it needs one"


def _endpoint_json(endpoint: Endpoint, keys: Mapping[str, str]) -> dict[str, Any]:
    return {
        "id": endpoint.id,
        "name": endpoint.name,
        "base_url": endpoint.base_url or None,
        "dialect": endpoint.dialect,
        "aliases": list(endpoint.aliases),
        "auth": endpoint.auth.scheme,
        "key_variables": list(endpoint.auth.env),
        "key_needed": endpoint.auth.scheme not in ("none", *_SIGN_INS) and not endpoint.auth.optional,
        "key_set": bool(_key_of(endpoint, keys)),
        "source": endpoint.source,
        "docs": endpoint.docs or None,
    }


def _detail_json(endpoint: Endpoint, rule: Rule, guessed: bool, info: ModelInfo) -> dict[str, Any]:
    import msgspec

    return {
        **_endpoint_json(endpoint, _keys([endpoint])),
        "settings": endpoint.settings,
        "rule": msgspec.to_builtins(rule),
        "guessed": guessed,
        "model": msgspec.to_builtins(info),
    }


def _print_detail(endpoint: Endpoint, rule: Rule, guessed: bool, info: ModelInfo, model: str) -> None:
    import msgspec

    pen = terminal.pen(sys.stdout)
    terminal.out(f"{pen(endpoint.id, 'bold')}  {endpoint.name}")
    terminal.out(f"  {endpoint.base_url or '(give --base-url)'}, dialect {endpoint.dialect}")
    terminal.out(f"  authentication: {_SCHEMES[endpoint.auth.scheme]}")
    terminal.out(f"  {_key_text(endpoint, _keys([endpoint]))}")
    if endpoint.docs:
        terminal.out(f"  documentation: {endpoint.docs}")
    for key, value in endpoint.settings.items():
        terminal.out(f"  sets {key}: {value}")
    terminal.out()
    for_model = f" for {model}" if model else ""
    terminal.out(pen(f"rule {rule.id}{for_model}", "bold") + (" (guessed: no row names it)" if guessed else ""))
    for name, value in msgspec.structs.asdict(rule).items():
        if name == "id" or not is_given(rule, name):
            continue
        if name == "source":
            value += "" if is_public(endpoint, rule) else f" ({NO_PAGE})"
        if terminal.width() < terminal.NARROW:
            terminal.out(f"  {pen(name, 'dim')}")
            for told in rule_lines(value):
                terminal.out(terminal.wrap(told, 4))
            continue
        lines = [line for told in rule_lines(value) for line in terminal.wrap(told, 22).splitlines()]
        terminal.out(f"  {pen(terminal.pad(name, 20), 'dim')}{lines[0].lstrip()}")
        for line in lines[1:]:
            terminal.out(line)
    if info.context or info.efforts:
        limit = f"context {info.context}" if info.context else "context unknown"
        efforts = f", efforts {', '.join(info.efforts)}" if info.efforts else ""
        terminal.out(f"  {pen(terminal.pad('model', 20), 'dim')}{limit}{efforts}")


def is_given(of: object, name: str) -> bool:
    """Whether a row, or a table in one, says something of the field ``name``: it differs from the default."""
    return bool(getattr(of, name) != _defaults(type(of))[name])  # type: ignore[arg-type]


@functools.cache
def _defaults(kind: type) -> dict[str, object]:
    """What each field of a table is where nothing is said of it."""
    import msgspec

    return {
        field.name: field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
        for field in msgspec.structs.fields(kind)
    }


def rule_lines(value: object) -> Iterator[str]:
    """What a key of a rule row says, in lines: nested tables as dotted names, never as JSON."""
    import msgspec

    match value:
        case msgspec.Struct():
            for name, each in msgspec.structs.asdict(value).items():
                if is_given(value, name):
                    yield from _named(name, each)
        case dict():
            yield _parameters(value)
        case tuple() if any(isinstance(each, msgspec.Struct) for each in value):
            for each in value:
                yield "; ".join(rule_lines(each))
        case tuple() if any(isinstance(each, dict) for each in value):
            yield ", or ".join(map(_parameters, value))
        case tuple():
            yield ", ".join(map(str, value))
        case _:
            yield _word(value)


def _named(name: str, value: object) -> Iterator[str]:
    """A field of a table; of a table of words, a line for each word."""
    if isinstance(value, dict) and name in _OF_WORDS:
        for word, params in value.items():
            yield f"{name} {word}: {_parameters(params)}"
        return
    if value is True:
        yield name
        return
    yield f"{name}: {'; '.join(rule_lines(value))}"


def _parameters(table: Mapping[str, object]) -> str:
    """Parameters of a request: ``thinking.type = disabled``."""
    return ", ".join(f"{path} = {_word(value)}" for path, value in _leaves(table, "")) or "nothing is sent"


def _leaves(table: Mapping[str, object], before: str) -> Iterator[tuple[str, object]]:
    for name, value in table.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{before}{name}.")
        elif isinstance(value, list) and any(isinstance(each, dict) for each in value):
            yield from _leaves({f"{name}[{at}]": each for at, each in enumerate(value)}, before)
        else:
            yield f"{before}{name}", value


def _word(value: object) -> str:
    """A value: text as it is, where it can be seen."""
    import json

    return value if isinstance(value, str) and value.strip() else json.dumps(value, ensure_ascii=False)
