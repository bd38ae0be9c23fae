"""What a tool call may do: the rules that decide whether it runs, is denied, or is put to a person."""

from __future__ import annotations

from typing import Literal, TypeAlias

# What a tool does to the world: it only looks, it changes files, or it runs something that may do anything.
Effect: TypeAlias = Literal["reads", "writes", "runs"]
