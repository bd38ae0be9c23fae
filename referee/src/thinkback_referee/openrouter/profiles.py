"""The models behind the router, as data: one row per model, and how its provider words what is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

from ..chat.profiles import COMMON_FIELDS, Host, Keeps, Profile

HOST = Host(
    name="openrouter",
    # cache marks on messages: OpenRouter's own package for the AI SDK sets them (src/chat of ai-sdk-provider)
    fields=COMMON_FIELDS | {"reasoning", "reasoning_content", "reasoning_details", "cache_control"},
    changed="",
    unauthorized=("No auth credentials found", "401", None),
    unknown_model=("{model} is not a valid model ID", "400", None),
    roles=("system", "developer", "user", "assistant", "tool"),
    base_path="/api/v1",
)
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


@dataclass(frozen=True, slots=True)
class Family:
    """One kind of upstream: what its details look like, and its refusals (``{index}``: of the message)."""

    provider: str
    format: str
    carrier: str
    """Where the opaque value stands: ``signature`` of a text, ``data`` of an encrypted entry, or nowhere."""
    readable: str
    """The type of the readable entry; empty: there is none."""
    text_back: bool
    """Whether readable text of the provider may come back."""
    missing: str
    """Refusal of a call of the open turn without its carrier; empty: it may come alone."""
    invalid: str
    native_finish: tuple[str, str]
    """The upstream's own words for a stop and for calls."""


_ANTHROPIC = Family(
    provider="Anthropic",
    format="anthropic-claude-v1",
    carrier="signature",
    readable="reasoning.text",
    text_back=True,
    missing=(
        "messages.{index}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When "
        "`thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost "
        "set of `tool_use` and `tool_result` blocks). We recommend you include thinking blocks from previous turns. To "
        "avoid this requirement, disable `thinking`. Please consult our documentation at "
        "https://docs.claude.com/en/docs/build-with-claude/extended-thinking"
    ),
    invalid="messages.{index}.content.0: Invalid `signature` in `thinking` block",
    native_finish=("end_turn", "tool_use"),
)
_OPENAI = Family(
    provider="OpenAI",
    format="openai-responses-v1",
    carrier="data",
    readable="reasoning.summary",
    text_back=True,
    # Recorded: a call without its details is accepted, for the router names no item ids then.
    missing="",
    invalid=(
        "The encrypted content for item {id} could not be verified. Reason: Encrypted content could not be decrypted "
        "or parsed."
    ),
    native_finish=("completed", "completed"),
)
_GOOGLE = Family(
    provider="Google AI Studio",
    format="google-gemini-v1",
    carrier="data",
    readable="reasoning.text",
    text_back=False,
    missing=(
        "Function call is missing a thought_signature in functionCall parts. This is required for tools to work "
        "correctly, and missing thought_signature may lead to degraded model performance."
    ),
    invalid="Corrupted thought signature.",
    native_finish=("STOP", "STOP"),
)
CHANGED = "The reasoning of messages[{index}] is not the one that was issued"  # text unconfirmed
_XAI = Family(
    provider="xAI",
    format="unknown",
    carrier="",
    readable="reasoning.text",
    text_back=True,
    missing="",
    invalid=CHANGED,
    native_finish=("stop", "tool_calls"),
)


@dataclass(frozen=True, slots=True)
class Row:
    """One model."""

    chat: Profile
    family: Family
    thinks: bool = True
    """Whether it reasons when the request does not say."""
    mandatory: bool = False
    """Whether reasoning cannot be switched off."""


def _row(model: str, family: Family, *, thinks: bool = True, mandatory: bool = False) -> Row:
    return Row(Profile(HOST, model, keeps=Keeps.EVERYTHING), family, thinks, mandatory)


_ROWS = (
    _row("anthropic/claude-haiku-4.5", _ANTHROPIC, thinks=False),
    _row("openai/gpt-5-codex", _OPENAI, mandatory=True),
    _row("openai/gpt-5.2", _OPENAI),
    _row("google/gemini-3.1-flash-lite-preview", _GOOGLE, mandatory=True),
    _row("x-ai/grok-4.1-fast", _XAI),
)
ROWS: MappingProxyType[str, Row] = MappingProxyType({row.chat.model: row for row in _ROWS})
