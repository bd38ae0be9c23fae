"""Reasoning as plain functions over blocks, for programs that build their own messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias, get_args

from thinkback.errors import SettingError
from thinkback.model.blocks import Block, ThinkingBlock

Policy: TypeAlias = Literal["all", "allButLast", "none"]
"""The reasoning that is stripped."""


def extract_thinking_blocks(blocks: Sequence[Block]) -> list[ThinkingBlock]:
    """All reasoning among ``blocks``, in order."""
    return [block for block in blocks if isinstance(block, ThinkingBlock)]


def filter_thinking_for_context(contents: Sequence[Sequence[Block]], policy: Policy) -> list[list[Block]]:
    """``contents`` (one list of blocks per response) without the reasoning that ``policy`` strips.

    ``allButLast`` keeps the last response that has reasoning. The input is not changed. Raises ``SettingError`` for
    another policy.
    """
    if policy not in get_args(Policy):
        raise SettingError(
            f"policy: {policy!r} is none of {', '.join(get_args(Policy))}",
            details={"key": "policy", "value": policy, "allowed": list(get_args(Policy))},
            next_actions=("give 'none' to keep all reasoning, 'all' to strip it",),
        )
    last = max((at for at, blocks in enumerate(contents) if extract_thinking_blocks(blocks)), default=-1)
    kept: list[list[Block]] = []
    for at, blocks in enumerate(contents):
        keeps = policy == "none" or (policy == "allButLast" and at == last)
        kept.append([block for block in blocks if keeps or not isinstance(block, ThinkingBlock)])
    return kept


def thinking_to_reasoning_field(blocks: Sequence[ThinkingBlock]) -> str | None:
    """The thoughts of ``blocks`` joined by one newline; ``None`` when there is nothing to send."""
    return "\n".join(block.thought for block in blocks if block.thought) or None
