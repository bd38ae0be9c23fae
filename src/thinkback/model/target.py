"""Where a request goes and what that place needs: endpoint, rule row, model facts, effective settings.

Shared by every pure package, so that none needs another for it; what holds behaviour is look-up and merging only.
"""

from __future__ import annotations

import fnmatch
from typing import Any, Literal, TypeAlias

import msgspec

from thinkback.model.rule import Endpoint, ModelInfo, Rule
from thinkback.model.tables import html_table, markdown_table
from thinkback.model.think_tags import Where


class Settings(msgspec.Struct, frozen=True):
    """Effective settings of one request. ``explicit`` names the keys a person set (anything above endpoint data).

    ``carry``: ``keep_last`` is what every app carries along, which a finished turn without reasoning empties.
    ``params`` are the request fields that settings name, as a JSON object. ``client`` is the dialect of the program
    whose request is passed on, empty for a request of our own: a call that it sent without a result gets none in its
    own dialect, and one that is named in any other. ``client_reasons``: its request brings reasoning, which goes
    along wherever it may, where no setting speaks.
    """

    enabled: bool = True
    include_in_context: bool = False
    include_in_response: bool = True
    effort: str | None = None
    max_tokens: int | None = None
    format: Literal["field", "native"] = "field"
    strip_from_context: Literal["all", "allButLast", "none"] = "none"
    foreign: Literal["drop", "summary", "text"] = "drop"
    keep_last: int | None = None
    carry: bool = False
    display: Literal["auto", "summarized", "updates", "omitted"] = "auto"
    summary: Literal["none", "auto", "concise", "detailed"] | None = None
    readable: bool | None = None
    verbosity: Literal["low", "medium", "high"] | None = None
    strict: bool = False
    tags: Where | None = None
    field_name: str | None = None
    budget: int | None = None
    budget_action: Literal["warn", "step_down", "stop"] = "warn"
    server_state: bool = False
    defaults: int | None = None
    app: str | None = None
    profile: str | None = None
    title: str | None = None
    imported: bool = False
    log_retention: int | None = None
    usage_log: bool = True
    usage_log_content: bool = False
    telemetry_spans: bool = False
    telemetry_content: bool = False
    compaction_auto: bool = True
    compaction_thresholds: str = "70/80/90"
    compaction_strategy: Literal["deterministic", "model", "sliding_window", "middle_out"] = "deterministic"
    compaction_model: str | None = None
    compaction_keep_turns: int = 4
    compaction_rationale: bool = False
    context_limit: int | None = None
    context_size: int | None = None
    system_changes: Literal["in-place", "append"] = "in-place"
    display_reasoning: Literal["full", "collapsed", "hidden"] = "collapsed"
    display_theme: Literal["auto", "dark", "light", "plain"] = "auto"
    display_language: Literal["auto", "en", "ja", "zh", "ko", "es", "fr", "de"] = "auto"
    permissions_mode: Literal["auto", "ask", "read_only"] = "auto"
    permissions_rules: str | None = None
    shell_environment: str | None = None
    max_steps: int | None = None
    agents_depth: int = 1
    agents_parallel: int = 4
    agents_max_effort: str | None = None
    params: str = ""
    client: str = ""
    client_reasons: bool = False
    explicit: frozenset[str] = frozenset()


class Target(msgspec.Struct, frozen=True):
    """Where the next request goes: everything compile needs to know about it. ``on``: the day the rule was chosen for.

    ``guessed``: the rule was not written for this model. ``account_known`` as in ``Origin``.
    ``limit_asked`` is the day on which the server told the limit that ``info`` has.
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
    limit_asked: str = ""


class Basis(msgspec.Struct, frozen=True):
    """The data a request is built by, as its record keeps it."""

    endpoint: Endpoint
    rule: Rule
    info: ModelInfo


DecisionAction: TypeAlias = Literal[
    "native", "field", "tags", "summary", "text", "placeholder", "dummy", "server", "drop"
]


WITHHELD: frozenset[DecisionAction] = frozenset({"drop", "placeholder", "dummy"})
"""What is done with reasoning that does not go back: it is left out, or a stand-in goes."""


class Decision(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What compile did with one carrier or one reasoning text, by which rule, and why.

    ``block`` is the commit hash (empty for a placeholder), ``message`` the index in the compiled message array
    (-1 when nothing was sent), ``part`` the position inside that message, where it is known. ``reported`` is what the
    provider said of it afterwards. ``cause`` is the reason as a word, of what stays away.
    """

    action: DecisionAction
    what: Literal["reasoning", "signature", "encrypted", "redacted", "thought_signature", "item_id", "phase", "text"]
    block: str
    rule: str
    reason: str
    message: int = -1
    part: int = -1
    characters: int = 0
    guessed: bool = False
    reported: str = ""
    cause: str = ""

    def __str__(self) -> str:
        where = f"message {self.message}: " if self.message >= 0 else ""
        about = f"{self.what} {self.block[:8]}" if self.block else f"a stand-in for {self.what}"
        sent = "not sent" if self.action == "drop" else f"sent ({self.action})"
        return f"{where}{about} {sent}: {self.reason}"

    def __repr__(self) -> str:
        return f"<Decision: {self}>"


_HEADINGS = ("action", "what", "block", "rule", "reason", "reported")


class Decisions(list[Decision]):
    """Decisions as a list that notebooks show as a table. A list, because that is what programs take it for."""

    def _repr_html_(self) -> str:
        return html_table(_HEADINGS, self._rows())

    def _repr_markdown_(self) -> str:
        return markdown_table(_HEADINGS, self._rows())

    def _rows(self) -> list[tuple[str, ...]]:
        return [(one.action, one.what, one.block[:8], one.rule, one.reason, one.reported) for one in self]


def model_matches(model: str, patterns: tuple[str, ...]) -> bool:
    """Whether ``model`` matches one of the glob ``patterns``, upper and lower case alike."""
    lowered = model.lower()
    return any(_matches(lowered, pattern.lower()) for pattern in patterns)


def _matches(text: str, pattern: str) -> bool:
    """``fnmatch.fnmatchcase``, without a regular expression where only asterisks are in the pattern."""
    if "?" in pattern or "[" in pattern:
        return fnmatch.fnmatchcase(text, pattern)
    first, *others = pattern.split("*")
    if not others:
        return text == first
    *middle, last = others
    at = len(first) if text.startswith(first) else -1
    for part in middle:
        found = text.find(part, at) if at >= 0 else -1
        at = found + len(part) if found >= 0 else -1
    return 0 <= at <= len(text) - len(last) and text.endswith(last)


def lookup(params: dict[str, Any], path: str) -> Any:
    """The value at a dotted ``path`` in nested ``params``, or ``None``."""
    node: Any = params
    for part in path.split("."):
        if not isinstance(node, dict) or part not in node:
            return None
        node = node[part]
    return node


def merge_headers(base: dict[str, str], over: dict[str, str]) -> dict[str, str]:
    """``base`` and ``over``; of a header that both have, the values stand side by side, each once."""
    names = {name.lower(): name for name in base}
    merged = dict(base)
    for name, value in over.items():
        known = names.get(name.lower())
        if known is None:
            merged[name] = value
            continue
        words = [word.strip() for word in f"{merged[known]},{value}".split(",")]
        merged[known] = ",".join(dict.fromkeys(words))
    return merged


def name_conversation(endpoint: Endpoint, headers: dict[str, str], conversation: str) -> dict[str, str]:
    """Add the conversation's id to ``headers`` where ``endpoint`` demands one; an id that is there stays."""
    name = endpoint.conversation_header
    if not name or name.lower() in map(str.lower, headers):
        return headers
    return {**headers, name: conversation}


def merge(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """``base`` with ``over`` laid on it; nested tables are merged, everything else is replaced."""
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        merged[key] = merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def overlay(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """As ``merge``, but an innermost table of ``over`` replaces what stands in its place: old siblings go."""
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        inner = isinstance(value, dict) and any(isinstance(item, dict) for item in value.values())
        merged[key] = overlay(old, value) if inner and isinstance(old, dict) else value
    return merged


def nested(path: str, value: Any) -> dict[str, Any]:
    """``value`` at a dotted ``path``."""
    for part in reversed(path.split(".")):
        value = {part: value}
    return dict(value)


def without(params: dict[str, Any], path: str) -> dict[str, Any]:
    """``params`` without what stands at the dotted ``path``, and without tables that it leaves empty."""
    key, _, below = path.partition(".")
    if not below:
        return {name: value for name, value in params.items() if name != key}
    inner = params.get(key)
    if not isinstance(inner, dict):
        return params
    left = without(inner, below)
    return {**params, key: left} if left else without(params, key)
