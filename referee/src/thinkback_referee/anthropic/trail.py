"""What comes before a block, as digests: two requests have the same ones up to a block iff they agree up to it.

Cache marks, thinking blocks and how a text is wrapped do not count; neither does where one message of a role ends and
the next of that role begins.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

from ..jsons import as_list, as_object, as_text
from .request import THINKING, Block, Message

_MARKS = frozenset({"cache_control", "caller"})


class Trail:
    """The blocks read so far."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._role = ""

    def feed(self, role: str, block: Block) -> None:
        """Read one block; thoughts leave no trace."""
        if block.kind in THINKING:
            return
        if role != self._role:
            self._role = role
            self._hash.update(role.encode())
        self._hash.update(_canonical(block.raw))

    def read(self, messages: Sequence[Message]) -> None:
        """Read whole messages."""
        for message in messages:
            for block in message.blocks:
                self.feed(message.role, block)

    @property
    def digest(self) -> str:
        """The digest of all that was read."""
        return self._hash.hexdigest()


def digest_of(value: object) -> str:
    """The digest of the system prompt or the list of tools."""
    return hashlib.sha256(_canonical(value)).hexdigest()


def _canonical(value: object) -> bytes:
    return json.dumps(_plain(value), sort_keys=True, separators=(",", ":")).encode()


def _plain(value: object) -> object:
    if isinstance(value, dict):
        kept = {name: _plain(inner) for name, inner in as_object(value).items() if _counts(name, inner)}
        return {**kept, "content": _wrapped(value["content"])} if "content" in kept else kept
    return [_plain(inner) for inner in as_list(value)] if isinstance(value, list) else value


def _counts(name: str, value: object) -> bool:
    return name not in _MARKS and value is not None


def _wrapped(content: object) -> object:
    return [{"text": as_text(content), "type": "text"}] if isinstance(content, str) else _plain(content)


def system_digest(body: Mapping[str, object]) -> str:
    """The digest of the system prompt; a string is one text block."""
    system = body.get("system")
    return digest_of(_wrapped(system) if system else [])


def tools_digest(body: Mapping[str, object]) -> str:
    """The digest of the offered tools."""
    return digest_of(as_list(body.get("tools")))
