"""Google's parameters in the one of their two spellings that the tables know."""

from __future__ import annotations

from typing import Any

from thinkback.turn.translation.paths import Params

# What of the parameters has members of Google's own: schemas, labels and settings of others keep their names.
_TREE: dict[str, Any] = {
    "generationConfig": {"thinkingConfig": {}},
    "toolConfig": {"functionCallingConfig": {}},
}


def camel(params: Params, tree: dict[str, Any] = _TREE) -> Params:
    """``params`` with the names of JSON, where a client wrote those of protocol buffers (``generation_config``)."""
    told: Params = {}
    for key, value in params.items():
        first, *others = key.split("_")
        name = first + "".join(word[:1].upper() + word[1:] for word in others)
        told[name] = camel(value, tree[name]) if name in tree and isinstance(value, dict) else value
    return told
