"""The settings there are: one row per key, with type, default, allowed values and a sentence of help.

Owns names and what may be said of them; ``values`` reads values, who set what is in ``layers``. Help, completion, files
and profiles all read this table, so that a new setting is one row here and one field of ``model.target.Settings``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from thinkback.settings import permissions

Value: TypeAlias = Any
"""A boolean, an integer or a text; of ``params.*`` anything that JSON can hold but ``null``."""

LARGEST = 2**31 - 1
IMPORTED = "session.imported"
TITLE = "session.title"
RETENTION = "log.retention"
BEGUN_WITH = "session.defaults"
"""Which built-in defaults a session began with; unset, those before 1."""
NEWEST = 1
"""The defaults that a session begins with now."""
DEFAULT = "default"
"""Said for any key: weaker layers do not speak; the built-in value is in force, where there is one."""


PARAMS = "params"
"""The group of settings that are fields of the request: ``params.temperature``. Its names are open."""


class Key(msgspec.Struct, frozen=True):
    """One setting. ``field`` is its name in ``Settings``; no ``default`` means that it is unset until someone sets it.

    ``choices`` are the words of a choice, ``smallest`` bounds an integer, ``refused_in`` names layers that may not
    set it. ``words`` say what a text may be. ``recorded``: it bears on requests, so that their records keep it.
    """

    name: str
    field: str
    type: Literal["boolean", "choice", "field", "integer", "json", "names", "percentages", "rules", "text", "words"]
    help: str
    default: Value | None = None
    choices: tuple[str, ...] = ()
    smallest: int = 0
    words: str = ""
    refused_in: tuple[str, ...] = ()
    recorded: bool = True

    @property
    def allowed(self) -> tuple[str, ...]:
        """What may be said, for help and error texts: the words, or one phrase for anything else."""
        if self.type == "boolean":
            return ("true", "false")
        if self.type == "integer":
            return (f"a whole number from {self.smallest} to {LARGEST}",)
        return self.choices or (self.words,)


ROWS = (
    Key(
        "reasoning.enabled",
        "enabled",
        "boolean",
        "Whether the model is asked to reason; off also sends no earlier reasoning back.",
        default=True,
    ),
    Key(
        "reasoning.includeInContext",
        "include_in_context",
        "boolean",
        "Whether earlier reasoning is sent back to the model if the endpoint leaves the choice.",
        default=False,
    ),
    Key(
        "reasoning.includeInResponse",
        "include_in_response",
        "boolean",
        "Whether reasoning is shown; requests and the log do not depend on it.",
        default=True,
    ),
    Key(
        "reasoning.effort",
        "effort",
        "choice",
        "How hard the model should think; unset leaves it to the provider.",
        choices=("none", "minimal", "low", "medium", "high", "xhigh", "max"),
    ),
    Key(
        "reasoning.maxTokens",
        "max_tokens",
        "integer",
        "The most tokens the model may spend on reasoning; unset leaves it to the provider.",
        smallest=1,
    ),
    Key(
        "reasoning.format",
        "format",
        "choice",
        "How reasoning is written to the endpoint; native behaves as field.",
        default="field",
        choices=("field", "native"),
    ),
    Key(
        "reasoning.stripFromContext",
        "strip_from_context",
        "choice",
        "Which responses of finished turns lose their reasoning; applied before other settings.",
        default="none",
        choices=("all", "allButLast", "none"),
    ),
    Key(
        "reasoning.foreign",
        "foreign",
        "choice",
        "What to send of reasoning that another model minted: nothing, its summary, or its text.",
        default="drop",
        choices=("drop", "summary", "text"),
    ),
    Key(
        "reasoning.keepLast",
        "keep_last",
        "integer",
        "How many responses of finished turns keep their reasoning; beats stripFromContext.",
        refused_in=("app",),
    ),
    Key(
        "reasoning.display",
        "display",
        "choice",
        "What the provider returns of hidden reasoning; with omitted a search finds none of it.",
        default="auto",
        choices=("auto", "summarized", "updates", "omitted"),
    ),
    Key(
        "reasoning.summary",
        "summary",
        "choice",
        "Which summary of hidden reasoning to request; unset, reasoning.display decides.",
        choices=("none", "auto", "concise", "detailed"),
    ),
    Key(
        "reasoning.readable",
        "readable",
        "boolean",
        "Whether a gateway asks for readable reasoning where its client did not, for the log alone.",
    ),
    Key(
        "reasoning.strict",
        "strict",
        "boolean",
        "Send nothing about reasoning and accept none, for hosts that must not know of it.",
        default=False,
    ),
    Key(
        "reasoning.tags",
        "tags",
        "choice",
        "Where tags like <think> in an answer make reasoning of what is between them: at its start, also at the start "
        "of a line, anywhere outside code and quotation marks, or nowhere; unset, as the rule says.",
        choices=("start", "lines", "anywhere", "off"),
        recorded=False,
    ),
    Key(
        "reasoning.fieldName",
        "field_name",
        "field",
        "The one message field that reasoning is read from and goes back in, at endpoints of chat completions; unset, "
        "as the rule says.",
        words="the name of a message field of its own, like reasoning_content",
    ),
    Key(
        "reasoning.budget",
        "budget",
        "integer",
        "How many tokens of reasoning a session may use; a notice appears from 80 % on.",
        smallest=1,
        recorded=False,
    ),
    Key(
        "reasoning.budgetAction",
        "budget_action",
        "choice",
        "What a spent budget does: warn, lower the effort with each request, or refuse to send.",
        default="warn",
        choices=("warn", "step_down", "stop"),
        recorded=False,
    ),
    Key(
        "text.verbosity",
        "verbosity",
        "choice",
        "How long answers should be; unset leaves it to the provider.",
        choices=("low", "medium", "high"),
    ),
    Key(
        "context.size",
        "context_size",
        "integer",
        "How many of the last turns a request contains, the current one included; unset, all.",
        smallest=1,
    ),
    Key(
        "context.systemChanges",
        "system_changes",
        "choice",
        "Where a system message goes that another program put among earlier ones: there, or behind the history.",
        default="in-place",
        choices=("in-place", "append"),
    ),
    Key(
        "session.serverState",
        "server_state",
        "boolean",
        "Whether the provider keeps the conversation, so that requests send only what is new; the log keeps all.",
        default=False,
    ),
    Key(
        "session.app",
        "app",
        "text",
        "The app of the session; another app needs another session.",
        words="the name of an app",
        refused_in=("user", "app", "profile", "call"),
        recorded=False,
    ),
    Key(
        BEGUN_WITH,
        "defaults",
        "integer",
        "Which built-in defaults the session began with; from 1 on a model that can reason is asked to, before only "
        "where a setting says so.",
        refused_in=("user", "app", "profile", "call"),
    ),
    Key(
        IMPORTED,
        "imported",
        "boolean",
        "Whether the conversation came in a file: an address that only the file names is not gone on with by itself.",
        default=False,
        refused_in=("user", "app", "profile", "call"),
        recorded=False,
    ),
    Key(
        "session.profile",
        "profile",
        "text",
        "The loaded profiles, separated by commas; a later one overrides an earlier one.",
        words="names of profiles, separated by commas",
        refused_in=("app", "profile", "call"),
        recorded=False,
    ),
    Key(
        TITLE,
        "title",
        "words",
        "The title of the session in lists; unset, the first words of its first question.",
        words="a title of a few words",
        refused_in=("user", "app", "profile", "call"),
        recorded=False,
    ),
    Key(
        RETENTION,
        "log_retention",
        "integer",
        "After how many days a gateway, and `thinkback gc`, erase what was said; unset keeps it.",
        smallest=1,
        refused_in=("session", "app", "profile", "call"),
        recorded=False,
    ),
    Key(
        "usage.log",
        "usage_log",
        "boolean",
        "Whether each request writes a line to the usage log; the line contains no message text.",
        default=True,
        recorded=False,
    ),
    Key(
        "usage.logContent",
        "usage_log_content",
        "boolean",
        "Whether lines of the usage log also contain the prompt and the answer.",
        default=False,
        recorded=False,
    ),
    Key(
        "telemetry.spans",
        "telemetry_spans",
        "boolean",
        "Whether each request to a model is an OpenTelemetry span.",
        default=False,
        refused_in=("app",),
        recorded=False,
    ),
    Key(
        "telemetry.content",
        "telemetry_content",
        "boolean",
        "Whether spans also contain messages, with reasoning, signatures and sealed values.",
        default=False,
        refused_in=("app",),
        recorded=False,
    ),
    Key(
        "context.limit",
        "context_limit",
        "integer",
        "How many tokens a request may have, where that of the model is not known or more than a server takes.",
        smallest=1,
        recorded=False,
    ),
    Key(
        "compaction.auto",
        "compaction_auto",
        "boolean",
        "Whether a history that fills the model's context is summarised automatically; nothing is deleted.",
        default=True,
        recorded=False,
    ),
    Key(
        "compaction.thresholds",
        "compaction_thresholds",
        "percentages",
        "Percent of the context at which to warn, to trim old tool results, and to summarise.",
        default="70/80/90",
        words="three rising percentages like 70/80/90",
        recorded=False,
    ),
    Key(
        "compaction.strategy",
        "compaction_strategy",
        "choice",
        "How a history is summarised by itself: from the log alone, by a model, or by leaving out the beginning or the "
        "middle.",
        default="deterministic",
        choices=("deterministic", "model", "sliding_window", "middle_out"),
        recorded=False,
    ),
    Key(
        "compaction.model",
        "compaction_model",
        "text",
        "Who writes summaries, as endpoint/model or a model of the same endpoint; unset, the model of the session.",
        words="a model, or endpoint/model",
        recorded=False,
    ),
    Key(
        "compaction.rationale",
        "compaction_rationale",
        "boolean",
        "Whether a model that writes a summary also reads the readable reasoning, for reasons that stand nowhere else.",
        default=False,
        recorded=False,
    ),
    Key(
        "compaction.keepTurns",
        "compaction_keep_turns",
        "integer",
        "How many of the last turns a summary keeps unchanged, if there is room.",
        default=4,
        smallest=1,
        recorded=False,
    ),
    Key(
        "display.reasoning",
        "display_reasoning",
        "choice",
        "How thinking is drawn: in full, as one line that can be unfolded, or not at all.",
        default="collapsed",
        choices=("full", "collapsed", "hidden"),
        recorded=False,
    ),
    Key(
        "display.theme",
        "display_theme",
        "choice",
        "The terminal's background; auto queries the terminal, plain uses no escape codes.",
        default="auto",
        choices=("auto", "dark", "light", "plain"),
        recorded=False,
    ),
    Key(
        "display.language",
        "display_language",
        "choice",
        "The language of the words for thinking; auto takes it from the environment.",
        default="auto",
        choices=("auto", "en", "ja", "zh", "ko", "es", "fr", "de"),
        recorded=False,
    ),
    Key(
        "permissions.mode",
        "permissions_mode",
        "choice",
        "Which tools run without a person's word: all, those that only read, or those alone and the others never.",
        default="auto",
        choices=("auto", "ask", "read_only"),
        recorded=False,
    ),
    Key(
        "permissions.rules",
        "permissions_rules",
        "rules",
        "Rules for the calls of single tools; they override permissions.mode.",
        words=permissions.WORDS,
        recorded=False,
    ),
    Key(
        "shell.environment",
        "shell_environment",
        "names",
        "Environment variables that commands get besides the ones that every program needs.",
        words="names of variables, separated by commas",
        refused_in=("app",),
        recorded=False,
    ),
    Key(
        "turn.maxSteps",
        "max_steps",
        "integer",
        "The most responses of one turn; unset, 25.",
        smallest=1,
        recorded=False,
    ),
    Key(
        "agents.depth",
        "agents_depth",
        "integer",
        "How many levels of sub-agents are allowed; with 1, sub-agents start none.",
        default=1,
        smallest=1,
        recorded=False,
    ),
    Key(
        "agents.parallel",
        "agents_parallel",
        "integer",
        "How many sub-agents of one session work at the same time.",
        default=4,
        smallest=1,
        recorded=False,
    ),
    Key(
        "agents.maxEffort",
        "agents_max_effort",
        "choice",
        "The highest effort that the model may request of a sub-agent; unset, the session's, else medium.",
        choices=("none", "minimal", "low", "medium", "high", "xhigh", "max"),
        recorded=False,
    ),
)

KEYS: Mapping[str, Key] = {row.name: row for row in ROWS}

ALIASES: Mapping[str, str] = {
    "reasoning.budgetTokens": "reasoning.maxTokens",
    "responses-stateful": "session.serverState",
    "modelParams": PARAMS,
}
"""Names that other programs have for a setting or a group of them; settings are stored and shown by ours."""
_ROW = "`thinkback endpoints ID --model NAME` shows the row; one of your own goes into rules.toml (docs/rules.md)"
_KEPT = (
    "a profile holds the name of a key and never a key",
    "`thinkback keys set NAME` stores a key under a name",
    'and key_env = "NAME" in a profile names it',
)
ELSEWHERE: Mapping[str, tuple[str, ...]] = {
    "reasoning.effortMap": (
        "the wire words of an effort are data of the endpoint's rule row",
        'in a row: controls.effort.high.reasoning_effort = "max"; an empty table suppresses a word',
        _ROW,
    ),
    "reasoning.enabledMap": (
        "the wire words that switch reasoning on and off are data of the endpoint's rule row",
        "in a row: controls.on.enable_thinking = true, controls.off.enable_thinking = false",
        _ROW,
    ),
    "reasoning.effortWireFormat": (
        "the wire words of an effort are data of the endpoint's rule row, as with auto",
        'in a row: controls.effort.high.reasoning.effort = "high", or like = "ID" for the words of another row',
        _ROW,
    ),
    "reasoning.enabledWireFormat": (
        "the wire words that switch reasoning on and off are data of the endpoint's rule row, as with auto",
        'in a row: controls.on.thinking.type = "enabled", or like = "ID" for the words of another row',
        _ROW,
    ),
    "reasoning.adaptiveThinking": (
        "thinking is adaptive wherever the model has it and no budget is set",
        "for adaptive thinking set reasoning.enabled to true and leave reasoning.maxTokens unset",
        "for a budget set reasoning.maxTokens (reasoning.budgetTokens is the same)",
    ),
    "compression-threshold": (
        "the threshold for automatic summaries is a percentage of the context",
        "for 0.8 set compaction.thresholds to 60/70/80: warn, trim old results, summarise",
        "to turn automatic summaries off, set compaction.auto to false",
    ),
    "context-limit": (
        "the context size of a model is data of the model",
        "in rules.toml: a [[model]] row with model and context (docs/rules.md)",
        "for fewer turns in a request set context.size",
    ),
    "prompt-caching": (
        "marks for a provider's cache are parts of a message, or a field of the request",
        "give parts with cache_control (docs/library.md)",
        "or set the endpoint's own field as params.NAME",
    ),
    "auth-key": _KEPT,
    "auth-keyfile": _KEPT,
}
"""What other programs have as settings and what it is here: the fact, then what to do."""


def param(name: str) -> Key:
    """The key of the request field ``name`` (``params.temperature``)."""
    return Key(
        name,
        "",
        "json",
        "A field of each request: common names (temperature, max_tokens, top_p, stop ...) in the endpoint's own words, "
        "any other as it is; dots nest.",
        words="any JSON value but null",
        recorded=False,
    )


def ours(name: str) -> str:
    """Our name of the setting that another program may call ``name``."""
    group, _, rest = name.partition(".")
    return f"{ALIASES[group]}.{rest}" if rest and group in ALIASES else ALIASES.get(name, name)


def is_group(name: str) -> bool:
    """Whether settings stand below ``name`` in files."""
    return ours(name) == PARAMS or any(known.startswith(f"{name}.") for known in KEYS)
