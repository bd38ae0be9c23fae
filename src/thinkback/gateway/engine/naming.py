"""What a request names besides its model: other models, and things that the upstream's account keeps.

All keys of a gateway share an upstream's account, so a name is enough to reach what another key's request left there.
Which fields name is data, by the dialect of the client. Pure. Must not: look into arguments and schemas of tools, whose
names are the client's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from thinkback.gateway.grant import OPEN, Grant
from thinkback.gateway.refusals import Refused

EVERY_MODEL = "*"
# Below these a key is the client's own word.
_FOREIGN = frozenset(
    {"args", "arguments", "input_schema", "json_schema", "parametersJsonSchema", "properties", "responseSchema"}
)
_OF_TOOLS = frozenset({"function", "functionDeclarations", "function_declarations", "functionCall", "function_call"})


def _any(value: Any) -> bool:
    return True


def _is_thing(value: Any) -> bool:
    """A name, or an object with one; ``{"type": "auto"}`` names nothing."""
    return isinstance(value, str) or (isinstance(value, dict) and "id" in value)


def _is_kept(value: Any) -> bool:
    """An address inside an account; pages and films of the web are everybody's."""
    return not str(value).startswith(("http://", "https://")) or "googleapis.com" in str(value)


class Field(NamedTuple):
    """A field of a body: ``key`` of the body itself where ``under`` is empty, else anywhere below that key of it.

    ``names`` tells whether a value that is not empty names something.
    """

    key: str
    under: str = ""
    names: Callable[[Any], bool] = _any


_ROUTERS = tuple(Field(key) for key in ("models", "fallbacks", "fallback_model", "route", "preset", "plugins"))
MODELS: Mapping[str, tuple[Field, ...]] = {
    "anthropic": (*_ROUTERS, Field("model", "tools"), Field("model", "context_management"), Field("advisor")),
    "gemini": (*_ROUTERS, Field("model")),
    "openai-chat": (*_ROUTERS, Field("model", "tools"), Field("model", "web_search_options")),
    "openai-responses": (*_ROUTERS, Field("model", "tools"), Field("prompt")),
}
"""By dialect the fields that may lead to another model than the one that is asked for (OpenRouter's routing, fallbacks,
models of tools, prompts that are kept with a model)."""

KEPT: Mapping[str, tuple[Field, ...]] = {
    "anthropic": (
        Field("container", names=_is_thing),
        Field("file_id", "messages"),
        Field("file_id", "system"),
        Field("skills", "container"),
    ),
    "gemini": (
        Field("cachedContent"),
        Field("cached_content"),
        *(
            Field(key, under, _is_kept)
            for key in ("fileUri", "file_uri")
            for under in ("contents", "systemInstruction")
        ),
        Field("fileSearchStoreNames", "tools"),
        Field("file_search_store_names", "tools"),
        Field("datastore", "tools"),
        Field("ragCorpus", "tools"),
    ),
    "openai-chat": (Field("file_id", "messages"), Field("id", "audio")),
    "openai-responses": (
        Field("background"),
        Field("conversation"),
        Field("prompt"),
        Field("file_id", "input"),
        Field("container_id", "input"),
        Field("file_id", "tools"),
        Field("file_ids", "tools"),
        Field("vector_store_ids", "tools"),
        Field("container", "tools", _is_thing),
        Field("container_id", "tools"),
        Field("skill_id", "tools"),
    ),
}
"""By dialect the fields that name, or leave, something in the account of the upstream."""


def check_models(grant: Grant, front: str, body: Mapping[str, Any]) -> None:
    """Raise ``Refused`` where a key that is limited to models names others."""
    if EVERY_MODEL in grant.models:
        return
    for path in named(MODELS[front], body):
        raise Refused(
            403,
            "names_other_models",
            f"this key is limited to models, and {path} may lead to others: leave it out",
            details={"param": path},
        )


def kept(grant: Grant, front: str, body: Mapping[str, Any]) -> tuple[str, ...]:
    """Where ``body`` names what an account keeps; without keys there is one tenant, whose account it is."""
    return () if grant.key == OPEN.key else tuple(named(KEPT[front], body))


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
    for field in fields:
        if not field.under:
            if body.get(field.key) and field.names(body[field.key]):
                yield field.key
        elif body.get(field.under):
            yield from _below(field, body[field.under], field.under)


def _below(field: Field, value: Any, path: str) -> Iterator[str]:
    level = [(path, value)]
    while level:
        path, value = level.pop()
        if isinstance(value, list):
            level += [(f"{path}[{at}]", each) for at, each in enumerate(value) if isinstance(each, dict | list)]
        elif isinstance(value, dict):
            if value.get(field.key) and field.names(value[field.key]):
                yield f"{path}.{field.key}"
            level += [(f"{path}.{key}", each) for key, each in value.items() if _goes_on(key, each, path)]


def _goes_on(key: str, value: Any, path: str) -> bool:
    if key in _FOREIGN or (key in _OF_TOOLS and path.startswith("tools")) or not isinstance(value, dict | list):
        return False
    # what a tool is called with, or answers with, as an object
    return not (isinstance(value, dict) and key in ("input", "response", "output"))
