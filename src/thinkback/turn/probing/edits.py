"""Variations of a request that a rule cannot say: one word of a thought changed, one character of an opaque value.

They work on the JSON of any dialect, because the thoughts and opaque values of the conversation are known by heart.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Any, Literal, TypeAlias

from thinkback.model import canonical
from thinkback.model.blocks import Block, ThinkingBlock, carriers_of

Edit: TypeAlias = Literal["", "word", "opaque", "blank", "unsigned"]
# What lets a model go on with its thoughts; other carriers name or label an item.
_OPAQUE = frozenset({"signature", "encrypted", "redacted", "thought_signature"})
# A shorter one may stand by chance inside another text.
_TELLING = 20


def texts_of(blocks: Iterable[Block]) -> tuple[str, ...]:
    """The readable thoughts among ``blocks``."""
    return tuple(block.thought for block in blocks if isinstance(block, ThinkingBlock) and block.thought.strip())


def opaque_of(blocks: Iterable[Block]) -> tuple[str, ...]:
    """The opaque values that ``blocks`` carry."""
    return tuple(carrier.value for block in blocks for carrier in carriers_of(block) if carrier.kind in _OPAQUE)


def edited(body: bytes, edit: Edit, blocks: Collection[Block]) -> bytes | None:
    """``body`` with the reasoning of ``blocks`` changed; ``None`` where there is nothing in it to change."""
    before = canonical.decode(body)
    after = _walk(before, edit, texts_of(blocks), frozenset(opaque_of(blocks)))
    return None if after == before else canonical.raw(canonical.source(after))


def _walk(node: Any, edit: Edit, texts: tuple[str, ...], opaque: frozenset[str]) -> Any:
    if isinstance(node, dict):
        left = (
            (key, value)
            for key, value in node.items()
            if not (edit == "unsigned" and isinstance(value, str) and value in opaque)
        )
        return {key: _walk(value, edit, texts, opaque) for key, value in left}
    if isinstance(node, list):
        return [_walk(value, edit, texts, opaque) for value in node]
    if not isinstance(node, str):
        return node
    if edit == "opaque":
        return _one_character(node) if node in opaque else node
    found = [text for text in texts if text == node or (len(text) >= _TELLING and text in node)]
    if edit == "blank":
        return " " if found else node
    if edit == "word":
        for text in found:
            node = node.replace(text, _one_word(text), 1)
    return node


def _one_word(text: str) -> str:
    """``text`` with its last word of three letters or more in other letters."""
    words = list(re.finditer(r"[^\W\d_]{3,}", text))
    if not words:
        return f"{text} otherwise"
    last = words[-1]
    return f"{text[: last.start()]}{'otherwise' if last[0] != 'otherwise' else 'likewise'}{text[last.end() :]}"


def _one_character(value: str) -> str:
    """``value`` with the character in its middle changed; base64 stays base64."""
    at = len(value) // 2
    return f"{value[:at]}{'A' if value[at : at + 1] != 'A' else 'B'}{value[at + 1 :]}"
