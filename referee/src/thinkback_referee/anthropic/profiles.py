"""Claude models and the hosts that serve them, as data: what each takes, keeps, reads and refuses.

Texts in quotes are the provider's own where they are known. Where no recording or report shows the text, the row says
"text unconfirmed" and the wording is the referee's.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ..jsons import names

MANUAL = "enabled"
ADAPTIVE = "adaptive"
DISABLED = "disabled"
BETWEEN = "between_tools"
BINDING_BETA = "thinking-binding-controls-2026-08-01"
CLEARING_BETA = "context-management-2025-06-27"
COUNTING_BETA = "thinking-token-count-2026-05-13"
INTERLEAVED_BETA = "interleaved-thinking-2025-05-14"
SHAPING_BETA = "structured-outputs-2025-11-13"
UPDATES_BETA = "thinking-display-updates-2026-08-18"
THREADS_BETA = "message-threads-2026-08-12"
COMPACTING_BETA = "compact-2026-09-04"
FALLBACK_BETA = "server-side-fallback-2026-07-01"
# An effort on a message; the second name is the one that Claude Code 2.1.330 sends.
TURN_BETAS = frozenset({"mid-conversation-output-config-2026-07-01", "per-turn-control-2026-07-01"})

BETWEEN_INSTEAD = 'To turn thinking off on this model, send "thinking": {"type": "between_tools"}.'  # text unconfirmed

EVERY_TURN = 1 << 30
LAST_TURN = 1
_LEVELS = ("low", "medium", "high")
_TO_MAX = (*_LEVELS, "max")
EFFORTS = (*_LEVELS, "xhigh", "max")


@dataclass(frozen=True, slots=True)
class Host:
    """One place that serves the format: where its credentials and versions are, and how its ids look."""

    name: str
    version: str = ""
    """The value that ``anthropic_version`` in the body must have; empty where a header carries the version."""
    message_prefix: str = "msg_01"
    call_prefix: str = "toolu_01"
    strict_betas: bool = False
    """Refuses beta names that it does not know."""
    signed: bool = True
    """Thinking carries a signature; where it does not, its text must come back instead."""
    api: bool = False
    """Claude's own host, where some models read more than elsewhere."""


@dataclass(frozen=True, slots=True)
class Profile:
    """One model."""

    model: str
    served: str = ""
    """The name that responses report, where it differs from the requested one."""
    types: frozenset[str] = frozenset({MANUAL, DISABLED})
    default: str = DISABLED
    """The type of thinking when the request does not say."""
    display: str = "summarized"
    efforts: tuple[str, ...] = ()
    keeps: int = EVERY_TURN
    """Of how many turns, counted from the last, the model sees the thinking."""
    reads: frozenset[str] = frozenset()
    """Other models whose blocks it reads."""
    reads_on_api: frozenset[str] = frozenset()
    """Those whose blocks it reads on Claude's own host only."""
    bound: bool = False
    """Preserved thinking: its blocks are bound to the conversation, and it checks those that it is given."""
    always_enforced: bool = False
    """Checks what stands before a block for early accounts too, without being asked."""
    forced: str = "Thinking may not be enabled when tool_choice forces tool use."
    always_unforced: bool = False
    """Forced calls are refused whatever the request says about thinking; else only with a budget."""
    pinned: str = "`temperature` may only be set to 1 when thinking is enabled"
    sampling: bool = True
    """Takes temperature, top_p and top_k without thinking."""
    prefill: bool = True
    late_system: bool = False
    """Takes messages with the role ``system``."""
    counts: bool = False
    """Reports ``thinking_tokens``."""
    leads_blank: bool = False
    """Writes a text of two line ends before its thoughts, in adaptive mode."""
    capped: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    """By type of thinking: the efforts that it takes with it."""
    hints: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """By unsupported type: what to do instead, where it is not the usual advice."""


CLAUDE = Host("anthropic", api=True)
VERTEX = Host(
    "vertex-claude",
    version="vertex-2023-10-16",
    message_prefix="msg_vrtx_01",
    call_prefix="toolu_vrtx_01",
    strict_betas=True,
)
DEEPSEEK = Host("deepseek-anthropic", message_prefix="", call_prefix="call_00_", signed=False)

# The beta names that hosts with strict validation know; `effort-2025-11-24` is not among them any more.
KNOWN_BETAS = frozenset(
    (BINDING_BETA, CLEARING_BETA, COUNTING_BETA, INTERLEAVED_BETA, SHAPING_BETA, UPDATES_BETA)
) | names("context-1m-2025-08-07 fine-grained-tool-streaming-2025-05-14 token-efficient-tools-2025-02-19")

_ADAPTIVE_PINNED = "`temperature` may only be set to 1 when thinking is enabled or in adaptive mode"
_NEVER_FORCED = "tool_choice forces tool use is not compatible with this model"
# Which older models read each other's blocks is unconfirmed: here they all do, as no check was made before binding.
# What one platform minted works on another (platform.claude.com/docs/en/build-with-claude/thinking).
UNBOUND = names(
    "claude-3-7-sonnet claude-sonnet-4 claude-opus-4 claude-opus-4-1 claude-sonnet-4-5 claude-haiku-4-5 claude- "
    "opus-4-5 claude-opus-4-6 claude-sonnet-4-6 claude-opus-4-7 claude-opus-4-8 claude-opus-5 claude-sonnet-5 claude- "
    "fable-5"
)


def _manual(model: str, date: str, keeps: int = LAST_TURN, efforts: tuple[str, ...] = ()) -> Profile:
    return Profile(model, f"{model}-{date}", keeps=keeps, efforts=efforts, reads=UNBOUND)


def _mixed(model: str, *, keeps: int = EVERY_TURN, leads_blank: bool = False) -> Profile:
    return Profile(
        model,
        types=frozenset({MANUAL, ADAPTIVE, DISABLED}),
        efforts=_TO_MAX,
        keeps=keeps,
        reads=UNBOUND,
        prefill=False,
        counts=True,
        leads_blank=leads_blank,
    )


def _adaptive(model: str, **fields: object) -> Profile:
    row = Profile(
        model,
        types=frozenset({ADAPTIVE, DISABLED}),
        display="omitted",
        efforts=EFFORTS,
        reads=UNBOUND,
        pinned=_ADAPTIVE_PINNED,
        sampling=False,
        prefill=False,
        counts=True,
    )
    return dataclasses.replace(row, **fields)  # type: ignore[arg-type]


def _always(model: str, **fields: object) -> Profile:
    row = _adaptive(model, types=frozenset({ADAPTIVE}), default=ADAPTIVE)
    return dataclasses.replace(row, **fields)  # type: ignore[arg-type]


def _preserved(model: str, *reads: str, **fields: object) -> Profile:
    # Blocks of Haiku 5.5 replay on the others.
    readable = frozenset({*reads, "claude-haiku-5-5"})
    row = _always(model, bound=True, late_system=True, reads=readable, forced=_NEVER_FORCED, always_unforced=True)
    return dataclasses.replace(row, **fields)  # type: ignore[arg-type]


_ROWS = (
    _manual("claude-3-7-sonnet", "20250219"),
    _manual("claude-sonnet-4", "20250514"),
    _manual("claude-opus-4", "20250514"),
    _manual("claude-opus-4-1", "20250805"),
    _manual("claude-sonnet-4-5", "20250929"),
    _manual("claude-haiku-4-5", "20251001"),
    _manual("claude-opus-4-5", "20251101", EVERY_TURN, _LEVELS),
    _mixed("claude-opus-4-6", leads_blank=True),
    _mixed("claude-sonnet-4-6"),
    _adaptive("claude-opus-4-7"),
    # A recorded request to it carried a message with the role `system`; of older models none is known.
    _adaptive("claude-opus-4-8", late_system=True),
    _adaptive("claude-opus-5", default=ADAPTIVE, capped={DISABLED: _LEVELS}),
    # Recorded: it thinks on requests without `thinking`.
    _adaptive("claude-sonnet-5", default=ADAPTIVE),
    _preserved("claude-opus-5-5"),
    _preserved(
        "claude-sonnet-5-5",
        types=frozenset({ADAPTIVE, BETWEEN}),
        capped={BETWEEN: _LEVELS},
        hints={DISABLED: BETWEEN_INSTEAD},
    ),
    # It takes `disabled`, with efforts up to high, and forced calls. It reads nobody else's blocks.
    _preserved(
        "claude-haiku-5-5",
        types=frozenset({ADAPTIVE, DISABLED}),
        capped={DISABLED: _LEVELS},
        always_unforced=False,
        reads=frozenset[str](),
    ),
    # Forced calls were answered by 200, unlike those of its successors.
    _always("claude-fable-5"),
    _preserved("claude-fable-5-1", "claude-opus-5", reads_on_api=names("claude-opus-5-5")),
    _preserved("claude-fable-5-2", always_enforced=True),
    # As Fable 5.1, but that it does not check what stands before a block.
    _preserved("claude-mythos-5-1", "claude-opus-5", reads_on_api=names("claude-opus-5-5"), bound=False),
    _preserved("claude-mythos-5-2", "claude-fable-5-2", always_enforced=True),
)
MODELS: MappingProxyType[str, Profile] = MappingProxyType({row.model: row for row in _ROWS})

_V4 = Profile("deepseek-v4-pro", types=frozenset({MANUAL, DISABLED}), default=MANUAL, efforts=EFFORTS)
DEEPSEEK_MODELS: MappingProxyType[str, Profile] = MappingProxyType(
    {
        "deepseek-v4-pro": _V4,
        "deepseek-v4-flash": dataclasses.replace(_V4, model="deepseek-v4-flash"),
        "deepseek-reasoner": dataclasses.replace(_V4, model="deepseek-reasoner", served="deepseek-v4-flash"),
    }
)

HOSTS: MappingProxyType[str, Host] = MappingProxyType({host.name: host for host in (CLAUDE, VERTEX, DEEPSEEK)})
# Region and vendor prefixes of Bedrock; dates and versions of all hosts; the old `-0` and `-latest` names.
_NAME = re.compile(r"(?:(?:[a-z-]{2,6}\.)?anthropic\.)?(claude-.+?)(?:-0|-latest|[-@]\d{8})?(?:-v\d+(?::\d+)?)?")


def profile_for(host: Host, model: str) -> Profile | None:
    """The row of a model at a host, whatever date, region or version its name carries."""
    if not host.signed:
        return DEEPSEEK_MODELS.get(model)
    found = _NAME.fullmatch(model)
    return MODELS.get(found[1]) if found else None


def models_of(host: Host) -> list[str]:
    """The model names that a host lists."""
    return list(MODELS if host.signed else DEEPSEEK_MODELS)
