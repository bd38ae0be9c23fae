"""What a request names besides its model: other models, and things that the upstream's account keeps.

All keys of a gateway share an upstream's account, so a name is enough to reach what another key's request left there.
Which fields name is in the front of the client's dialect. Pure. Must not: look into arguments and schemas of tools,
whose names are the client's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from thinkback.gateway.grant import OPEN, Grant
from thinkback.gateway.refusals import Refused
from thinkback.wire import registry
from thinkback.wire.front import Field

EVERY_MODEL = "*"
# Below these a key is the client's own word.
_FOREIGN = frozenset(
    {"args", "arguments", "input_schema", "json_schema", "parametersJsonSchema", "properties", "responseSchema"}
)
_OF_TOOLS = frozenset({"function", "functionDeclarations", "function_declarations", "functionCall", "function_call"})


def check_models(grant: Grant, front: str, body: Mapping[str, Any]) -> None:
    """Raise ``Refused`` where a key that is limited to models names others."""
    if EVERY_MODEL in grant.models:
        return
    for path in named(registry.front(front).body.models, body):
        raise Refused(
            403,
            "names_other_models",
            f"this key is limited to models, and {path} may lead to others: leave it out",
            details={"param": path},
        )


def kept(grant: Grant, front: str, body: Mapping[str, Any]) -> tuple[str, ...]:
    """Where ``body`` names what an account keeps; without keys there is one tenant, whose account it is."""
    return () if grant.key == OPEN.key else tuple(named(registry.front(front).body.stored, body))


def check_kept(paths: Sequence[str], upstream: str) -> None:
    """Raise ``Refused`` for names of what the account of ``upstream`` keeps: all keys share it."""
    for path in paths:
        raise Refused(
            403,
            "names_shared_state",
            f"{path} stands for something in the upstream's account, which all keys share: send the content itself, "
            f'or have the gateway\'s configuration say stored = "pass" under [upstreams.{upstream}]',
            details={"param": path},
        )


def named(fields: tuple[Field, ...], body: Mapping[str, Any]) -> Iterator[str]:
    """The paths of ``body`` at which one of ``fields`` names something."""
    yield from (field.key for field in fields if not field.under and _is_in(field, body))
    for under in dict.fromkeys(field.under for field in fields if field.under):
        if body.get(under):
            yield from _below([field for field in fields if field.under == under], body[under], under)


def _below(fields: Sequence[Field], value: Any, path: str) -> Iterator[str]:
    begins = [(field.key.partition(".")[0], field) for field in fields]
    level = [(path, value)]
    while level:
        path, value = level.pop()
        if isinstance(value, list):
            level += [(f"{path}[{at}]", each) for at, each in enumerate(value) if isinstance(each, dict | list)]
        elif isinstance(value, dict):
            yield from (f"{path}.{field.key}" for first, field in begins if first in value and _is_in(field, value))
            level += [
                (f"{path}.{key}", each)
                for key, each in value.items()
                if isinstance(each, dict | list) and _goes_on(key, each, path)
            ]


def _is_in(field: Field, value: Mapping[str, Any]) -> bool:
    """Whether ``value`` has the field, and the field names something."""
    found: Any = value
    for key in field.key.split("."):
        found = found.get(key) if isinstance(found, dict) else None
    return bool(found) and field.names(found)


def _goes_on(key: str, value: dict[str, Any] | list[Any], path: str) -> bool:
    if key in _FOREIGN or (key in _OF_TOOLS and path.startswith("tools")):
        return False
    # what a tool is called with, or answers with, as an object
    return not (isinstance(value, dict) and key in ("input", "response"))
