"""What Bedrock serves besides Claude, as data, and the hosts under which its models judge and mint."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ..anthropic.profiles import ADAPTIVE, DISABLED, MODELS, Host, Profile
from ..anthropic.profiles import profile_for as claude_for

# One name, as blocks that one route minted may come back by the other.
CONVERSE = Host("bedrock", message_prefix="", call_prefix="tooluse_", strict_betas=True)
INVOKE = dataclasses.replace(
    CONVERSE, version="bedrock-2023-05-31", message_prefix="msg_bdrk_01", call_prefix="toolu_bdrk_01"
)
PLAIN = dataclasses.replace(CONVERSE, signed=False)


@dataclass(frozen=True, slots=True)
class Plain:
    """A model whose reasoning is unsigned text that must not come back."""

    model: str
    field: str = ""
    """The additional request field that controls its reasoning."""
    efforts: tuple[str, ...] = ()
    """The words that the field takes; an object with ``maxReasoningEffort`` where it is nested."""
    nested: bool = False
    thinks: bool = True
    """Whether it thinks when the request does not say."""
    text_first: bool = False
    """Puts its answer before its reasoning."""
    blank_first: bool = False
    """Begins its streams with an empty text block."""
    shown: str = ""
    """What it shows instead of its reasoning."""


_EFFORTS = ("low", "medium", "high")
_ROWS = (
    Plain("amazon.nova-pro-v1:0", thinks=False),
    # That it shows this instead of its reasoning is unconfirmed.
    Plain(
        "amazon.nova-2-lite-v1:0",
        field="reasoningConfig",
        efforts=_EFFORTS,
        nested=True,
        thinks=False,
        shown="[REDACTED]",
    ),
    Plain("deepseek.r1-v1:0", text_first=True),
    Plain("openai.gpt-oss-120b-1:0", field="reasoning_effort", efforts=_EFFORTS, blank_first=True),
    Plain("openai.gpt-oss-20b-1:0", field="reasoning_effort", efforts=_EFFORTS, blank_first=True),
    Plain("qwen.qwen3-32b-v1:0", field="reasoning_config", efforts=("low", "high"), thinks=False),
    Plain("moonshot.kimi-k2-thinking"),
    Plain("minimax.minimax-m2"),
)
PLAINS: Mapping[str, Plain] = MappingProxyType({row.model: row for row in _ROWS})
_REGION = re.compile(r"(?:us|eu|apac|jp|au|ca|us-gov|global)\.")


def plain_for(model: str) -> Plain | None:
    """The row of a model that is not Claude, in whatever region."""
    return PLAINS.get(_REGION.sub("", model, count=1))


def profile_for(model: str) -> Profile | None:
    """Claude's row; its names carry the vendor here."""
    return claude_for(CONVERSE, model) if "anthropic." in model else None


def pretended(row: Plain, thinks: bool) -> Profile:
    """A plain model as a row of the Messages format, in which its requests are read: it keeps nothing."""
    return Profile(row.model, default=ADAPTIVE if thinks else DISABLED, types=frozenset(), keeps=0)


def models() -> list[str]:
    """The model names that are listed."""
    return [*(f"us.anthropic.{model}-v1:0" for model in MODELS), *PLAINS]
