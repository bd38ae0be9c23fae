"""Tells conversations with equal visible words apart: by their names, their instructions, and the client that has them.

Two runs of one script say the same, and so do their calls where a host counts ids. A response is therefore also found
under digests of its chain together with these marks (docs/format.md). Promises: a level of marks is asked for exactly,
so that a store filters before it limits. Pure. Must not: look anything up, or prefer one of several by anything else.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from thinkback.model import canonical
from thinkback.model.commits import Draft, Message, Tool, Tools

_SIZE = 16
_MARK = "cache_control"
# What of a definition is read into a tool's own fields; where it has more, or no schema, it is kept as it came.
_PLAIN = frozenset({"name", "description", "input_schema"})
_NO_PARAMETERS = Tool("").parameters


class Marks(NamedTuple):
    """The digests by which a conversation is told apart; an empty one is not known.

    ``name`` is that of the conversation, where its program gave one, ``context`` its system and tools, ``instance`` the
    client that has it.
    """

    name: bytes = b""
    context: bytes = b""
    instance: bytes = b""


class Level(NamedTuple):
    """Marks that a candidate shares with a request: ``data`` is hashed, ``words`` name them for people."""

    data: bytes
    words: str
    has_name: bool = False
    has_context: bool = False


_WORDS = ("of this name", "with equal system and tools", "of the same client")


def levels(marks: Marks) -> list[Level]:
    """The combinations of ``marks`` that narrow a choice, in the order in which they decide: the name weighs more than
    the rest, system and tools more than the client.
    """
    found: list[Level] = []
    for used in itertools.product(*((True, False) if mark else (False,) for mark in marks)):
        data = b"".join(b"nci"[at : at + 1] + marks[at] for at in range(len(marks)) if used[at])
        if data:
            words = ", ".join(_WORDS[at] for at in range(len(marks)) if used[at])
            found.append(Level(data, words, used[0], used[1]))
    return found


def name_of(marks: Marks) -> bytes:
    """The level of the name alone; nothing where there is none."""
    return b"n" + marks.name if marks.name else b""


def digest_of(kind: str, text: str) -> bytes:
    """The mark for a name or a client; none for an empty text."""
    return _digest(f"{kind}\n{text}") if text else b""


def context_of(drafts: Iterable[Draft]) -> bytes:
    """The mark for the instructions in front of a conversation and its tools, cache marks aside."""
    found = hashlib.sha256()
    tools: Sequence[Tool] = ()
    leads = True
    for draft in drafts:
        if isinstance(draft.value, Tools):
            tools = draft.value.tools
        elif draft.kind == "system" and isinstance(draft.value, Message):
            if leads:
                found.update(_bytes(f"system\n{draft.value.text.strip()}\n"))
        else:
            leads = False
    for tool in map(unmarked, tools):
        found.update(_bytes(f"tool\n{tool.name}\n{tool.description}\n{tool.parameters}\n{tool.wire}\n"))
    return found.digest()[:_SIZE]


def unmarked(tool: Tool) -> Tool:
    """``tool`` without a cache mark, as it is read where it never had one."""
    value = canonical.decode(tool.wire) if _MARK in tool.wire else None
    if not isinstance(value, dict):
        return tool
    value.pop(_MARK, None)
    if tool.parameters != _NO_PARAMETERS and value.keys() <= _PLAIN:
        return msgspec.structs.replace(tool, wire="", dialect="")
    return msgspec.structs.replace(tool, wire=canonical.source(value))


def _digest(text: str) -> bytes:
    return hashlib.sha256(_bytes(text)).digest()[:_SIZE]


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
