"""What a request names besides its model: other models, and things that the upstream's account keeps.

All keys of a gateway share an upstream's account, so a name is enough to reach what another key's request left there.
Which fields name is data, by the dialect of the client. Pure. Must not: look into arguments and schemas of tools, whose
names are the client's own.
"""

from __future__ import annotations

import re
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

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_CAPITAL = re.compile("[A-Z]")


def _any(value: Any) -> bool:
    return True


def _is_thing(value: Any) -> bool:
    """A name, or an object with one; ``{"type": "auto"}`` names nothing."""
    return isinstance(value, str) or (isinstance(value, dict) and "id" in value)


def _is_kept(value: Any) -> bool:
    """An address inside an account; pages and films of the web are everybody's."""
    return not str(value).startswith(("http://", "https://")) or "googleapis.com" in str(value)


def _is_of_account(value: Any) -> bool:
    """An address that only an account understands, as Kimi's ``ms://`` is."""
    scheme = _SCHEME.match(value) if isinstance(value, str) else None
    return scheme is not None and scheme[0].lower() not in ("http://", "https://")


def _is_files(value: Any) -> bool:
    """Text that Qwen-Long reads as the files of the account that it names."""
    return isinstance(value, str) and value.startswith("fileid://")


class Field(NamedTuple):
    """A field of a body: ``key`` of the body itself where ``under`` is empty, else anywhere below that key of it.

    ``key`` may be a path of keys with dots. ``names`` tells whether a value that is not empty names something.
    """

    key: str
    under: str = ""
    names: Callable[[Any], bool] = _any

    def is_in(self, value: Mapping[str, Any]) -> bool:
        """Whether ``value`` has the field, and the field names something."""
        found: Any = value
        for key in self.key.split("."):
            found = found.get(key) if isinstance(found, dict) else None
        return bool(found) and self.names(found)


def _both(*keys: str, under: Sequence[str] = ("",), names: Callable[[Any], bool] = _any) -> tuple[Field, ...]:
    """Google's fields in both spellings that its servers read."""
    spelt = dict.fromkeys(each for key in keys for each in (key, _CAPITAL.sub(r"_\g<0>", key).lower()))
    return tuple(Field(key, place, names) for key in spelt for place in under)


_ROUTERS = tuple(Field(key) for key in ("models", "fallbacks", "fallback_model", "route", "preset", "plugins"))
MODELS: Mapping[str, tuple[Field, ...]] = {
    "anthropic": (*_ROUTERS, Field("model", "tools"), Field("model", "context_management"), Field("advisor")),
    "gemini": (*_ROUTERS, Field("model")),
    "openai-chat": (*_ROUTERS, Field("model", "tools"), Field("model", "web_search_options")),
    "openai-responses": (*_ROUTERS, Field("model", "tools"), Field("prompt")),
}
"""By dialect the fields that may lead to another model than the one that is asked for (OpenRouter's routing, fallbacks,
models of tools, prompts that are kept with a model)."""

_OF_RESPONSES = ("file_id", "file_ids", "container_id", "vector_store_ids", "skill_id", "connector_id", "tunnel_id")
KEPT: Mapping[str, tuple[Field, ...]] = {
    "anthropic": (
        Field("container", names=_is_thing),
        Field("file_id", "messages"),
        Field("file_id", "system"),
        Field("skills", "container"),
        Field("thread.previous_message_id"),
    ),
    "gemini": (
        *_both("cachedContent"),
        *_both("fileUri", under=("contents", "systemInstruction", "system_instruction"), names=_is_kept),
        *_both("fileSearchStoreNames", "datastore", "dataStore", "engine", "ragCorpus", under=("tools",)),
        *_both("apiKeySecret", "apiKeySecretVersion", "credentialSecret", "serviceAccount", under=("tools",)),
    ),
    "openai-chat": (
        Field("file_id", "messages"),
        Field("audio.id", "messages"),
        Field("url", "messages", _is_of_account),
        Field("content", "messages", _is_files),
        Field("text", "messages", _is_files),
        Field("id", "audio"),
        *_both("cachedContent", "google.cachedContent", "extra_body.google.cachedContent"),
    ),
    "openai-responses": (
        Field("background"),
        Field("conversation"),
        Field("prompt"),
        # tools may also be given as an item
        *(Field(key, under) for key in _OF_RESPONSES for under in ("input", "tools")),
        *(Field("container", under, _is_thing) for under in ("input", "tools")),
    ),
}
"""By dialect the fields that name, or leave, something in the account of the upstream.

What a provider only compares a request with, to say why its cache was missed, is none: nothing of it comes back, and
Claude Code and pydantic-ai name their own last response there in every request.
"""


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
    yield from (field.key for field in fields if not field.under and field.is_in(body))
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
            yield from (f"{path}.{field.key}" for first, field in begins if first in value and field.is_in(value))
            level += [
                (f"{path}.{key}", each)
                for key, each in value.items()
                if isinstance(each, dict | list) and _goes_on(key, each, path)
            ]


def _goes_on(key: str, value: dict[str, Any] | list[Any], path: str) -> bool:
    if key in _FOREIGN or (key in _OF_TOOLS and path.startswith("tools")):
        return False
    # what a tool is called with, or answers with, as an object
    return not (isinstance(value, dict) and key in ("input", "response"))
