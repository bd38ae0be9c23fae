"""The models of each Responses host, as data: one row per model."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

from .hosts import HOSTS, Host


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
