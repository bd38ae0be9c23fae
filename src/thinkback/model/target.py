"""Where a request goes and what that place needs: endpoint, rule row, model facts, effective settings.

These are the shapes of the data under ``rules/data`` and of the settings registry; they hold no behaviour beyond
look-up, so that every pure package can share them.
"""

from __future__ import annotations

import fnmatch
from typing import Any, Literal, TypeAlias

import msgspec

Demand: TypeAlias = Literal["must", "should", "may", "never"]
Later: TypeAlias = Literal["must", "must-after-tools", "should", "may", "never"]
Form: TypeAlias = Literal["none", "field", "details", "tags"]
MissingStep: TypeAlias = Literal["placeholder", "thinking-off-for-this-turn", "none"]


class Auth(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How an endpoint wants its key. ``env`` are the environment variables tried in order."""

    scheme: Literal["bearer", "header", "none"] = "bearer"
    header: str = "Authorization"
    env: tuple[str, ...] = ()
    optional: bool = False


class Endpoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A place that speaks a dialect. ``hosts`` are glob patterns that recognise it in a user's own base URL."""

    id: str
    name: str
    base_url: str
    dialect: str = "openai-chat"
    path: str = "/chat/completions"
    hosts: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    auth: Auth = Auth()
    account: str = ""
    headers: dict[str, str] = {}
    settings: dict[str, Any] = {}
    stream_usage: bool = True
    source: str = ""


class Difference(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One key in which this rule's requests differ from recorded, accepted ones, with the reason."""

    key: str
    source: str


class Switch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Request parameters that go along with what compile sends, e.g. ``{"thinking": {"keep": "all"}}``."""

    params: dict[str, Any]


class Controls(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the neutral reasoning settings are said to this endpoint.

    ``effort`` maps a neutral word to the parameters that say it; ``on`` and ``off`` are the parameters of
    ``reasoning.enabled``; ``max_tokens`` is the dotted path of a token budget.
    """

    effort: dict[str, dict[str, Any]] = {}
    on: dict[str, Any] = {}
    off: dict[str, Any] = {}
    max_tokens: str = ""


class Guard(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who may read reasoning minted elsewhere. ``reads``: glob patterns of further models whose blocks are valid.

    ``unknown_account``: what to do where two accounts are known only as different key hashes.
    """

    reads: tuple[str, ...] = ()
    account: bool = False
    unknown_account: Literal["try", "drop"] = "try"


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an endpoint and model need of earlier reasoning. See ``docs/rules.md`` for each key.

    ``form``: how reasoning is written: a message field, ``reasoning_details``, tags in ``content``, or not at all.
    ``open_turn``/``later``: demand for the turn under way and for finished ones. ``scope``: which assistant
    messages ``must`` is about. ``placeholder`` with ``placeholder_on``: what stands in where there is nothing.
    ``keep_switch`` is emitted when reasoning of finished turns is sent; ``keeps_when`` is a parameter (dotted
    path = value) by which the user's own request turns retention on. ``thinks_unless`` is the parameter by which
    thinking (and with it the demand) is off; ``thinks_when`` the one without which it is off (dotted path = value;
    all pairs of one table, any of the tables). An empty ``field`` is the name the text came in. ``as_received``:
    of tags and details, reasoning goes back in the form it came in, whatever ``form`` says. ``refusals`` are regular
    expressions found in the host's error texts when the reasoning sent back was wrong.
    """

    id: str
    endpoint: str
    source: str
    since: str
    model: tuple[str, ...] = ("*",)
    form: Form = "none"
    field: str = "reasoning_content"
    as_received: bool = False
    also: tuple[str, ...] = ()
    open_turn: Demand = "never"
    later: Later = "never"
    scope: Literal["all", "tool-calls"] = "all"
    placeholder: str = ""
    placeholder_on: Literal["never", "tool-calls", "with-tools", "all"] = "never"
    missing: tuple[MissingStep, ...] = ()
    empty_details: bool = False
    drop_details: dict[str, tuple[str, ...]] = {}
    need_signature: tuple[str, ...] = ()
    repeat_text: tuple[str, ...] = ()
    forbid_foreign_text: bool = False
    keep_switch: Switch | None = None
    keeps_when: dict[str, Any] = {}
    thinks_unless: tuple[dict[str, Any], ...] = ()
    thinks_when: tuple[dict[str, Any], ...] = ()
    thinking_off: dict[str, Any] = {}
    guard: Guard = Guard()
    controls: Controls = Controls()
    reasoning_tokens: Literal["inside", "added", "unknown"] = "inside"
    reasoning_field: str = ""
    server_drop: Switch | None = None
    refusals: tuple[str, ...] = ()
    omits: tuple[Difference, ...] = ()
    adds: tuple[Difference, ...] = ()


class ModelInfo(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Facts about a model; 0 and empty mean unknown: no limit shown, no clamp."""

    model: str
    endpoint: str = "*"
    context: int = 0
    max_output: int = 0
    efforts: tuple[str, ...] = ()
    since: str = ""
    source: str = ""


class Settings(msgspec.Struct, frozen=True):
    """Effective settings of one request. ``explicit`` names the keys a person set (anything above endpoint data)."""

    enabled: bool = True
    include_in_context: bool = False
    include_in_response: bool = True
    effort: str | None = None
    max_tokens: int | None = None
    format: Literal["field", "native"] = "field"
    strip_from_context: Literal["all", "allButLast", "none"] = "none"
    foreign: Literal["drop", "summary", "text"] = "drop"
    keep_last: int | None = None
    explicit: frozenset[str] = frozenset()


class Target(msgspec.Struct, frozen=True):
    """Where the next request goes: everything compile needs to know about it. ``on``: the day the rule was chosen for.

    ``guessed``: the rule was not written for this model. ``account_known`` as in ``Origin``.
    """

    endpoint: Endpoint
    base_url: str
    model: str
    rule: Rule
    info: ModelInfo
    account: str = ""
    account_known: bool = False
    guessed: bool = False
    on: str = ""


class Basis(msgspec.Struct, frozen=True):
    """The data a request is built by, as its record keeps it."""

    endpoint: Endpoint
    rule: Rule
    info: ModelInfo


DecisionAction: TypeAlias = Literal[
    "native", "field", "tags", "summary", "text", "placeholder", "dummy", "server", "drop"
]


class Decision(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What compile did with one carrier or one reasoning text, by which rule, and why.

    ``block`` is the commit hash (empty for a placeholder), ``message`` the index in the compiled message array
    (-1 when nothing was sent). ``reported`` is what the provider said of it afterwards.
    """

    action: DecisionAction
    what: Literal["reasoning", "signature", "encrypted", "redacted", "thought_signature", "item_id", "phase", "text"]
    block: str
    rule: str
    reason: str
    message: int = -1
    characters: int = 0
    guessed: bool = False
    reported: str = ""


def model_matches(model: str, patterns: tuple[str, ...]) -> bool:
    """Whether ``model`` matches one of the glob ``patterns``, upper and lower case alike."""
    lowered = model.lower()
    return any(fnmatch.fnmatchcase(lowered, pattern.lower()) for pattern in patterns)


def lookup(params: dict[str, Any], path: str) -> Any:
    """The value at a dotted ``path`` in nested ``params``, or ``None``."""
    node: Any = params
    for part in path.split("."):
        if not isinstance(node, dict) or part not in node:
            return None
        node = node[part]
    return node


def merge(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """``base`` with ``over`` laid on it; nested tables are merged, everything else is replaced."""
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        merged[key] = merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged
