"""Which Google hosts and models the referee plays, as data: one row per model, and what each does about thinking.

Texts in quotes are Google's own where they are known; the others say "text unconfirmed".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Host:
    """One door to Google's models: who may enter, which dummy signatures it knows, and how it words refusals."""

    name: str
    dummies: frozenset[str]
    """Stand-ins for a signature that the validator lets through, literally or base64-encoded."""
    invalid: str
    """Refusal of a signature that is not the one that was issued."""
    missing: str
    """Refusal of an unsigned call; ``{name}`` is the function, ``{position}`` the content's place, from 1."""
    no_credentials: tuple[int, str, str]
    """Status, message and status word where no key or token came with the request."""
    bad_credentials: tuple[int, str, str]
    unknown_model: str
    envelope: Mapping[str, object] = field(default_factory=dict)
    """Members that every response of the host has."""
    usage: Mapping[str, object] = field(default_factory=dict)
    """Members that every usage object of the host has."""
    needs_role: bool = False
    """Whether contents without a role are refused, not taken for the user's."""
    indexed: bool = True
    """Whether candidates carry an index and, after calls, a finish message."""
    salt: bytes = b""
    """How the host's signatures begin."""


@dataclass(frozen=True, slots=True)
class Profile:
    """One model, at every host.

    ``levels``: the thinking levels it takes; empty: it knows budgets only. ``budgets``: the lowest and highest budget;
    None: a budget is refused. Neither: it does not think at all. ``off``: whether a budget of 0 turns thinking off.
    """

    model: str
    served: str = ""
    """The name that responses report, and under which signatures are known."""
    levels: tuple[str, ...] = ()
    budgets: tuple[int, int] | None = None
    off: bool = False
    thinks: bool = True
    """Whether it thinks when the request does not say."""
    validates: bool = True
    """Whether signatures of the open turn's calls are demanded, and all of them checked."""
    signs_last: bool = True
    """Where the signature of a response without calls stands: on its last part, else on its first."""
    call_ids: bool = True

    @property
    def reported(self) -> str:
        """The model name in responses."""
        return self.served or self.model


MISSING = (
    "Function call is missing a thought_signature in functionCall parts. This is required for tools to work "
    "correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call "
    "`default_api:{name}` , position {position}. Please refer to "
    "https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
)
MISSING_VERTEX = (
    "Unable to submit request because function call `default_api:{name}` in the {position}. content block is missing a "
    "`thought_signature`. Learn more: https://docs.cloud.google.com/vertex-ai/generative-ai/docs/thought-signatures"
)
NO_THINKING = "Thinking is not enabled for models/{model}"  # text unconfirmed
BOTH_CONTROLS = "You can only set only one of thinking budget and thinking level."
NO_LEVEL = "Thinking level is not supported for this model."
BAD_LEVEL = "Thinking level {level} is not supported for this model. Please retry with other thinking level."
NO_OFF = "Budget 0 is invalid. This model only works in thinking mode."
BAD_BUDGET = "The thinking budget {budget} is invalid. Please choose a value between {low} and {high}."
NO_BUDGET = "Thinking budget is not supported for this model."  # text unconfirmed
LEVELS = ("MINIMAL", "LOW", "MEDIUM", "HIGH", "XHIGH")

_SKIP = "skip_thought_signature_validator"
_TOKEN = (
    "Expected OAuth 2 access token, login cookie or other valid authentication credential. "
    "See https://developers.google.com/identity/sign-in/web/devconsole-project."
)
STUDIO = Host(
    name="gemini",
    dummies=frozenset({_SKIP, "context_engineering_is_the_way_to_go"}),
    invalid="Corrupted thought signature.",
    missing=MISSING,
    no_credentials=(
        403,
        "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other "
        "form of API consumer identity to call this API.",
        "PERMISSION_DENIED",
    ),
    bad_credentials=(400, "API key not valid. Please pass a valid API key.", "INVALID_ARGUMENT"),
    unknown_model=(
        "models/{model} is not found for API version v1beta, or is not supported for {method}. Call ListModels to see "
        "the list of available models and their supported methods."
    ),
    usage=MappingProxyType({"serviceTier": "standard"}),
    salt=b"\x12\xaf\x02\x0a\xac\x02\x01\x0c\x39\xd6\xc7",
)
VERTEX = Host(
    name="vertex",
    dummies=frozenset({_SKIP}),
    invalid=(
        "Unable to submit request because Thought signature is not valid.. Learn more: "
        "https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/gemini"
    ),
    missing=MISSING_VERTEX,
    no_credentials=(401, f"Request is missing required authentication credential. {_TOKEN}", "UNAUTHENTICATED"),
    bad_credentials=(401, f"Request had invalid authentication credentials. {_TOKEN}", "UNAUTHENTICATED"),
    unknown_model=(
        "Publisher Model `projects/{project}/locations/{location}/publishers/google/models/{model}` was not found or "
        "your project does not have access to it. Please ensure you are using a valid model version. For more "
        "information, see: https://cloud.google.com/vertex-ai/generative-ai/docs/learn/model-versions"
    ),
    envelope=MappingProxyType({"createTime": "2026-01-01T00:00:00.000000Z"}),
    usage=MappingProxyType({"trafficType": "ON_DEMAND"}),
    needs_role=True,
    indexed=False,
    salt=b"\x01\x8f\x3d\x6b\x5f",
)
HOSTS: MappingProxyType[str, Host] = MappingProxyType({host.name: host for host in (STUDIO, VERTEX)})


def _budgeted(model: str, low: int, high: int, *, off: bool = True, thinks: bool = True, served: str = "") -> Profile:
    # Signatures of 2.5 come on the first part, and nothing that comes back is looked at.
    return Profile(
        model,
        served=served,
        budgets=(low, high),
        off=off,
        thinks=thinks,
        validates=False,
        signs_last=False,
        call_ids=False,
    )


def _pro_25(model: str) -> Profile:
    return _budgeted(model, 128, 32768, off=False)


def _flash_25(model: str) -> Profile:
    return _budgeted(model, 1, 24576)


def _lite_25(model: str, served: str = "") -> Profile:
    return _budgeted(model, 512, 24576, thinks=False, served=served)


def _levelled(model: str, *levels: str, budgets: tuple[int, int] | None = None, served: str = "") -> Profile:
    return Profile(model, served=served, levels=levels, budgets=budgets)


# Budgets are tolerated up to 3.1; that 3.5 and later refuse them for inference is unconfirmed, as is who takes XHIGH.
_TOLERATED = (1, 32768)
_ROWS = (
    Profile("gemini-2.0-flash", thinks=False, validates=False, signs_last=False, call_ids=False),
    _pro_25("gemini-2.5-pro"),
    _pro_25("gemini-2.5-pro-preview-05-06"),
    _pro_25("gemini-2.5-pro-preview-06-05"),
    _flash_25("gemini-2.5-flash"),
    _flash_25("gemini-2.5-flash-preview-05-20"),
    _flash_25("gemini-2.5-flash-preview-09-2025"),
    _lite_25("gemini-2.5-flash-lite"),
    _lite_25("gemini-2.5-flash-lite-preview-06-17"),
    _lite_25("gemini-2.5-flash-lite-preview-09-2025"),
    _lite_25("gemini-flash-lite-latest", served="gemini-2.5-flash-lite-preview-09-2025"),
    _levelled("gemini-3-pro", "LOW", "MEDIUM", "HIGH", budgets=_TOLERATED, served="gemini-3-pro-preview"),
    _levelled("gemini-3-pro-preview", "LOW", "MEDIUM", "HIGH", budgets=_TOLERATED),
    _levelled("gemini-3.1-pro-preview", "LOW", "MEDIUM", "HIGH", budgets=_TOLERATED),
    # prefers the tools it is offered to a shell; Gemini CLI's subagents ask for it
    _levelled("gemini-3.1-pro-preview-customtools", "LOW", "MEDIUM", "HIGH", budgets=_TOLERATED),
    _levelled("gemini-3-flash-preview", *LEVELS[:4], budgets=_TOLERATED),
    _levelled("gemini-3.1-flash-lite", *LEVELS[:4], budgets=_TOLERATED),
    _levelled("gemini-3.5-flash", *LEVELS),
    _levelled("gemini-3.5-flash-lite", *LEVELS),
    _levelled("gemini-3.6-flash", *LEVELS),
    _levelled("gemini-flash-latest", *LEVELS, served="gemini-3.6-flash"),
    _levelled("gemini-3.7-flash", *LEVELS[1:]),
    _levelled("gemini-3.8-flash", *LEVELS[1:]),
)
PROFILES: MappingProxyType[str, Profile] = MappingProxyType({row.model: row for row in _ROWS})
