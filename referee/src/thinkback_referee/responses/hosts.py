"""The hosts that speak the Responses API, as data: paths, keys, error shapes, and which rules each of them enforces.

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
