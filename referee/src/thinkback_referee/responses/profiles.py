"""The hosts that speak the Responses API and their models, as data: paths, keys, error shapes, enforced rules.

Texts in quotes are the providers' own where they are known; otherwise the row says "text unconfirmed".
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Host:
    """One provider of the Responses API."""

    name: str
    base_path: str
    unauthorized: tuple[int, str, str | None]
    """Status, message and code of a missing or wrong key."""
    other_paths: tuple[str, ...] = ()
    """Further base paths under which it answers."""
    versioned_path: str = ""
    """A base path that wants ``api-version`` in the query."""
    keys: tuple[str, ...] = ("authorization",)
    """The headers that may carry the key; none is asked for where there is no name."""
    account_header: str = ""
    """A header that must name the account."""
    shape: str = "openai"
    """How it words errors; see ``refusals``."""
    ids: str = "openai"
    """How it makes ids; see ``mint``."""
    cipher: str = "fernet"
    """How encrypted content looks; see ``mint``."""
    keeps_state: bool = True
    """Whether it stores responses (``store`` is on by default) and continues them by id."""
    pairs: bool = False
    """Whether reasoning and what follows it must come back together (E1, E2)."""
    ids_resolve: bool = True
    """Whether a reasoning item without content is looked up by its id; else it is ignored."""
    strict_ids: bool = False
    """Whether ids must have the prefix of their type and at most 64 characters."""
    status_refused: bool = False
    """Whether ``status`` is refused in reasoning items and messages of the input."""
    session_only: bool = False
    """ChatGPT's backend: instructions, ``store: false`` and a stream are required, and the last event has no output."""
    merges_calls: bool = False
    """Whether calls become part of one assistant message, so that nothing may stand between them."""
    no_raw: bool = True
    """Whether raw reasoning text in ``content`` is refused."""
    refused_items: frozenset[str] = frozenset()
    """Types of items that it refuses in the input."""
    refused_parameters: frozenset[str] = frozenset()
    sampling: frozenset[str] = frozenset()
    """Parameters that are refused while the model reasons."""
    undecryptable: str = ""
    """The refusal of encrypted content that is not its own; empty: OpenAI's two texts."""
    unfound: str = ""
    """The refusal of a reasoning item that is not stored; empty: OpenAI's text."""
    item_status: bool = False
    """Whether reasoning items carry a status."""
    named_events: bool = True
    preamble: bytes = b""
    end: bytes = b""
    extra_fields: frozenset[str] = frozenset()
    """Further fields that its reasoning items may have."""
    takes_passthrough: bool = True
    """Whether it takes the field that Codex puts on any item."""


_SAMPLING = frozenset({"temperature", "top_p", "top_logprobs"})
_DONE = b"data: [DONE]\n\n"

_ROWS = (
    Host(
        name="openai",
        base_path="/v1",
        unauthorized=(401, "Incorrect API key provided.", "invalid_api_key"),
        pairs=True,
        strict_ids=True,
        sampling=_SAMPLING,
    ),
    Host(
        name="azure",
        base_path="/openai/v1",
        versioned_path="/openai",
        keys=("api-key", "authorization"),
        unauthorized=(
            401,
            "Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key "
            "for an active subscription and use a correct regional API endpoint for your resource.",
            "401",
        ),
        pairs=True,
        strict_ids=True,
        status_refused=True,
        sampling=_SAMPLING,
        takes_passthrough=False,  # openai/codex#30161
    ),
    Host(
        name="xai",
        base_path="/v1",
        # A 400, not a 401; that it is still so is unconfirmed.
        unauthorized=(400, "Incorrect API key provided.", "invalid-argument"),
        shape="xai",
        ids="xai",
        cipher="base64",
        no_raw=False,
        sampling=frozenset({"presence_penalty", "frequency_penalty", "stop"}),
        undecryptable=(
            "Could not decrypt the provided encrypted_content. Ensure the value is the unmodified encrypted_content "
            "from a previous response."
        ),
        item_status=True,
    ),
    Host(
        name="codex",
        base_path="/backend-api/codex",
        unauthorized=(401, "Unauthorized", None),
        account_header="chatgpt-account-id",
        keeps_state=False,
        pairs=True,
        strict_ids=True,
        session_only=True,
        refused_parameters=frozenset({"max_output_tokens", "previous_response_id", "temperature", "top_p"}),
        sampling=_SAMPLING,
    ),
    Host(
        name="copilot",
        base_path="",
        other_paths=("/v1",),
        unauthorized=(401, "unauthorized: token expired", "unauthorized"),  # text unconfirmed
        ids="rotating",
        keeps_state=False,
        ids_resolve=False,
        # Since 2026-05 (looplj/axonhub#1657); before, it took them with or without their content.
        refused_items=frozenset({"reasoning"}),
        sampling=_SAMPLING,
        takes_passthrough=False,  # caozhiyuan/copilot-api#308
    ),
    Host(
        name="meta",
        base_path="/v1",
        unauthorized=(401, "Incorrect API key provided.", "invalid_api_key"),  # text unconfirmed
        cipher="base64",
        # Both as reported (decolua/9router#4061), with the status that the reports have.
        undecryptable="reasoning `encrypted_content` was not issued to this caller",
        unfound="Referenced reasoning item was not found or was deleted",
    ),
    Host(
        name="openrouter",
        base_path="/api/v1",
        unauthorized=(401, "No auth credentials found", None),
        shape="openrouter",
        ids="temporary",
        keeps_state=False,
        ids_resolve=False,
        no_raw=False,
        named_events=False,
        preamble=b": OPENROUTER PROCESSING\n\n",
        end=_DONE,
        extra_fields=frozenset({"signature", "format"}),
    ),
    Host(
        name="deepseek",
        base_path="",
        other_paths=("/v1",),
        unauthorized=(401, "Authentication Fails (governor)", "invalid_request_error"),
        shape="deepseek",
        ids="uuid",
        keeps_state=False,
        ids_resolve=False,
        merges_calls=True,
        no_raw=False,
        item_status=True,
    ),
    Host(
        name="lmstudio",
        base_path="/v1",
        keys=(),
        unauthorized=(401, "", None),
        ids="short",
        ids_resolve=False,
        no_raw=False,
        item_status=True,
    ),
)
HOSTS: MappingProxyType[str, Host] = MappingProxyType({host.name: host for host in _ROWS})


@dataclass(frozen=True, slots=True)
class Profile:
    """One model at one host."""

    host: Host
    model: str
    served: str = ""
    """The name that responses report, where it differs from the requested one."""
    efforts: tuple[str, ...] = ()
    """The words of ``reasoning.effort``; none: the parameter is refused."""
    effort: str = "medium"
    """The effort when the request names none; ``none``: the model does not reason then."""
    contexts: tuple[str, ...] = ("auto", "current_turn")
    context: str = "current_turn"
    """What ``auto`` means: which earlier reasoning the model gets to read."""
    modes: tuple[str, ...] = ()
    raw: bool = False
    """Whether reasoning travels as readable ``content``; else it is encrypted."""
    always_encrypted: bool = False
    """Whether encrypted content comes without being asked for."""
    always_summarized: bool = False
    drops_silently: bool = False
    """Whether unreadable reasoning is left out with a report instead of being refused."""
    binds_prefix: bool = False
    """Whether reasoning is readable only behind the same instructions, tools and items as when it was minted."""
    phase: bool = False
    format: str = ""
    """The ``format`` of its reasoning items, where the host names one."""

    @property
    def reported(self) -> str:
        """The model name in responses."""
        return self.served or self.model

    @property
    def reasons(self) -> bool:
        """Whether the model can reason at all."""
        return bool(self.efforts) or self.raw or self.always_encrypted or self.always_summarized


_LOW = ("low", "medium", "high")
_MINIMAL = ("minimal", *_LOW)
_NONE = ("none", *_LOW)
_XHIGH = ("none", *_LOW, "xhigh")
_MAX = (*_XHIGH, "max")
_BOTH = ("auto", "current_turn", "all_turns")
_MODES = ("standard", "pro")


def _early(host: str) -> tuple[Profile, ...]:
    """OpenAI's models up to 5.2, at OpenAI or where they are resold."""
    played = HOSTS[host]
    older = ("o1-pro", "o3", "o3-mini", "o4-mini", "o3-deep-research", "o4-mini-deep-research", "codex-mini-latest")
    return (
        *(Profile(played, model, efforts=_LOW) for model in older),
        *(Profile(played, model, efforts=_MINIMAL) for model in ("gpt-5", "gpt-5-mini", "gpt-5-nano")),
        Profile(played, "gpt-5-chat-latest"),
        Profile(played, "gpt-4o"),
        Profile(played, "gpt-5.1", efforts=_NONE, effort="none"),
        Profile(played, "gpt-5.2", efforts=_XHIGH, effort="none"),
    )


def _late(host: str) -> tuple[Profile, ...]:
    """OpenAI's models from 5.3 on; the last ones read the reasoning of all turns."""
    played = HOSTS[host]

    def reading(model: str, efforts: tuple[str, ...]) -> Profile:
        # Which models report what they drop instead of refusing it is unconfirmed: here, those that default to
        # all_turns; likewise which of them bind reasoning to what stands before it: here, the latest.
        return Profile(
            played, model, efforts=efforts, contexts=_BOTH, context="all_turns", modes=_MODES, drops_silently=True,
            binds_prefix=model.startswith("gpt-6"), phase=True,
        )  # fmt: skip

    return (
        Profile(played, "gpt-5.3-codex", efforts=(*_LOW, "xhigh"), phase=True),
        Profile(played, "gpt-5.4", efforts=_XHIGH, effort="none", contexts=_BOTH, modes=("standard",), phase=True),
        Profile(played, "gpt-5.5", efforts=_XHIGH, contexts=_BOTH, phase=True),
        *(reading(model, _MAX) for model in ("gpt-5.6", "gpt-5.6-sol", "gpt-5.6-terra", "gpt-5.6-luna")),
        *(reading(model, _MAX) for model in ("gpt-6-sol", "gpt-6-luna", "gpt-6.1-terra")),
        *(reading(model, _MAX[1:]) for model in ("gpt-6-astra", "gpt-6.1-sol")),
    )


def _grok(model: str, efforts: tuple[str, ...], effort: str, served: str = "") -> Profile:
    return Profile(
        HOSTS["xai"], model, served, efforts=efforts, effort=effort, contexts=_BOTH, context="all_turns",
        always_summarized=True,
    )  # fmt: skip


def _raw(host: str, model: str, efforts: tuple[str, ...], effort: str = "medium", *, phase: bool = False) -> Profile:
    return Profile(HOSTS[host], model, efforts=efforts, effort=effort, raw=True, phase=phase)


def _routed(model: str, form: str) -> Profile:
    return Profile(
        HOSTS["openrouter"], model, efforts=_MAX, contexts=_BOTH, context="all_turns", always_encrypted=True,
        format=form,
    )  # fmt: skip


def _muse(model: str) -> Profile:
    return Profile(HOSTS["meta"], model, efforts=(*_MINIMAL, "xhigh", "max"), contexts=(), context="all_turns")


_DEEPSEEK_EFFORTS = ("none", "low", "high", "max")
_PROFILES = (
    *_early("openai"),
    *_late("openai"),
    *_early("azure"),
    *_late("azure"),
    *_late("codex"),
    *_late("copilot"),
    _grok("grok-3-mini", ("none", "low", "high"), "low", served="grok-4.3"),
    _grok("grok-4.3", ("none", *_LOW), "medium"),
    _grok("grok-4.5", _LOW, "high"),
    _grok("grok-3", ("none", *_LOW), "medium", served="grok-4.3"),
    _grok("grok-4.6", _LOW, "high"),
    _grok("grok-4.7", (*_LOW, "xhigh"), "high"),
    _grok("grok-4.20-reasoning", (), "high"),
    *(_muse(model) for model in ("muse-spark-1.1", "muse-spark-1.2", "muse-spark-1.3", "muse-wonder")),
    _routed("openai/gpt-6-sol", "openai-responses-v1"),
    _routed("google/gemini-3-flash-preview", "google-gemini-v1"),
    _raw("openrouter", "openai/gpt-oss-20b", _LOW),
    _raw("deepseek", "deepseek-v4-flash", _DEEPSEEK_EFFORTS, "high", phase=True),
    _raw("deepseek", "deepseek-v4-pro", _DEEPSEEK_EFFORTS, "high", phase=True),
    _raw("lmstudio", "openai/gpt-oss-20b", _LOW),
    _raw("lmstudio", "zai-org/glm-4.7-flash", _LOW),
)
PROFILES: MappingProxyType[tuple[str, str], Profile] = MappingProxyType(
    {(row.host.name, row.model): row for row in _PROFILES}
)


def profile_for(host: str, model: str) -> Profile | None:
    """The row of a model at a host, or None when the referee does not play it."""
    return PROFILES.get((host, model))


def models_of(host: str) -> list[str]:
    """The model names that a host lists."""
    return [model for name, model in PROFILES if name == host]
