"""Whether a provider refuses what was added to a program's request: its words name a field or a value of ours; and the
place without it. Pure.

Must not: take a word of everyday speech for the name of a field.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Set
from typing import Any, TypeAlias

import msgspec

from thinkback.model.rule import Switch
from thinkback.model.target import Target
from thinkback.wire.registry import front

_Headers: TypeAlias = list[tuple[bytes, bytes]]
_UNREADABLE = (msgspec.DecodeError, ValueError, RecursionError)


def added_names(given: bytes, sent: bytes, given_headers: _Headers, sent_headers: _Headers) -> Set[str]:
    """The members of ``sent``, a body, that ``given`` nowhere has; and the values of headers that were not given."""
    mine = set(_words(sent_headers)) - set(_words(given_headers)) if sent_headers != given_headers else set()
    if sent == given:
        return mine
    try:
        return mine | set(_names(msgspec.json.decode(sent))) - set(_names(msgspec.json.decode(given)))
    except _UNREADABLE:
        return mine


def named_in(names: Set[str], refusal: bytes) -> str:
    """The first of ``names`` that the document ``refusal`` names; empty where it names none."""
    try:
        texts = list(_texts(msgspec.json.decode(refusal)))
    except _UNREADABLE:
        texts = [refusal.decode("utf-8", "replace")]
    return next((name for name in sorted(names) if any(_is_named(name, text) for text in texts)), "")


def lacking(target: Target, names: Iterable[str]) -> Target:
    """``target`` whose data add none of ``names`` to a request; what else adds them stays."""
    for name in names:
        endpoint, rule = target.endpoint, target.rule
        counts = endpoint.stream_usage and name not in front(endpoint.dialect).body.usage.split(".")
        switches = {each: _switch(getattr(rule, each), name) for each in ("keep_switch", "drop_switch")}
        rest = {"params": _bare(rule.params, name), "headers": _bare_headers(rule.headers, name)}
        target = msgspec.structs.replace(
            target,
            endpoint=msgspec.structs.replace(endpoint, stream_usage=counts, params=_bare(endpoint.params, name)),
            rule=msgspec.structs.replace(rule, **rest, **switches),
        )
    return target


def _switch(given: Switch | None, name: str) -> Switch | None:
    if given is None:
        return None
    params, headers = _bare(given.params, name), _bare_headers(given.headers, name)
    return msgspec.structs.replace(given, params=params, headers=headers)


def _bare(params: dict[str, Any], name: str) -> dict[str, Any]:
    """``params`` without members of that name, and without tables that had nothing else."""
    bare = {key: _bare(held, name) if isinstance(held, dict) else held for key, held in params.items() if key != name}
    return {key: held for key, held in bare.items() if held != {} or params[key] == {}}


def _bare_headers(headers: dict[str, str], value: str) -> dict[str, str]:
    """``headers`` without that value, which may stand among others."""
    return {key: kept for key, said in headers.items() if (kept := _without(said, value))}


def _without(said: str, value: str) -> str:
    words = list(map(str.strip, said.split(",")))
    return ",".join(word for word in words if word != value) if value in words else said


def _is_named(name: str, text: str) -> bool:
    """A name that may be a word must be all of the text, or stand in quotation marks."""
    if text == name:
        return True
    escaped = re.escape(name)
    is_word = name.isalpha() and name.islower()
    pattern = f"[\"'`]{escaped}[\"'`]" if is_word else rf"(?<!\w){escaped}(?!\w)"
    return re.search(pattern, text) is not None


def _names(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield name
            yield from _names(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _names(inner)


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for inner in value.values():
                yield from _texts(inner)
        case list():
            for inner in value:
                yield from _texts(inner)


def _words(headers: _Headers) -> Iterator[str]:
    """Their values, one by one; that of the length is none."""
    for name, value in headers:
        if name.lower() != b"content-length":
            yield from (word.strip() for word in value.decode("latin-1").split(",") if word.strip())
