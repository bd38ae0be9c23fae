"""The shapes of the data under ``rules/data``: endpoints, rule rows, facts about models. No behaviour."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from thinkback.model.think_tags import Where

Demand: TypeAlias = Literal["must", "should", "may", "never"]
Later: TypeAlias = Literal["must", "must-after-tools", "must-with-tools", "should", "may", "never"]
Form: TypeAlias = Literal["none", "field", "details", "tags", "native"]
Markers: TypeAlias = Literal["", "kimi"]
MissingStep: TypeAlias = Literal[
    "placeholder", "dummy", "thinking-off-for-this-turn", "flatten-exchange-to-text", "none"
]
SystemPlace: TypeAlias = Literal["", "top", "late", "inline", "lead"]


class Auth(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How an endpoint wants its key. ``env`` are the environment variables tried in order.

    ``header`` is where a key goes that is no bearer token, ``query`` the query parameter of scheme ``query``.
    ``service`` is what a SigV4 signature is for, ``scope`` what a Google or Azure token is for. ``expires``: what the
    variables hold is a token that others replace, and says nothing about the account; ``expiring``: so is only what
    begins like one of these. ``along`` are headers that belong
    to a client's own credential, ``principal`` those of a response that name the organisation or account it is of.
    """

    scheme: Literal["bearer", "header", "query", "sigv4", "google", "azure", "none"] = "bearer"
    header: str = "Authorization"
    query: str = "key"
    service: str = ""
    scope: str = ""
    env: tuple[str, ...] = ()
    optional: bool = False
    expires: bool = False
    expiring: tuple[str, ...] = ()
    along: tuple[str, ...] = ()
    principal: tuple[str, ...] = ()


class LimitQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a server tells how many tokens a request to a model may have.

    ``path`` is relative to the base URL (``../props``); a POST sends ``{"model": ...}``. ``list`` names the list of
    models in the answer, and ``names`` the members of each that may be the model's name; without a list the answer is
    about the model. ``fields`` are the places of the number, the first that has one counts; each is a list of names
    (patterns), one inside the other.
    """

    path: str
    fields: tuple[tuple[str, ...], ...]
    source: str
    method: Literal["GET", "POST"] = "GET"
    list: str = ""
    names: tuple[str, ...] = ("id",)


class Endpoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A place that speaks a dialect. ``hosts`` are glob patterns that recognise it in a user's own base URL.

    ``path`` may have ``{model}`` in it. ``stream_path``: streams are asked for there, not by a parameter.
    ``params`` go with every request, under everything else. ``strict``: nothing about reasoning may be sent, and
    none may come. ``developer``: it knows the role of this name; elsewhere such a message is a
    system message. ``custom_tools``: it has tools that take any text, which only some hosts of chat completions have;
    elsewhere such a tool is a function of one string. ``takes`` are the paths of fields that programs
    add to requests for this provider alone. ``header_values`` are the values that it knows of a header
    which clients send, where it refuses others. ``conversation_header`` is the header in which it
    demands one id a conversation. ``limit_queries`` are tried in order, once a process, for the tokens that a request
    may have. ``docs`` is the address of what the provider says of reasoning.
    """

    id: str
    name: str
    base_url: str
    dialect: str = "openai-chat"
    path: str = "/chat/completions"
    stream_path: str = ""
    model_in_body: bool = True
    hosts: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    auth: Auth = Auth()
    account: str = ""
    headers: dict[str, str] = {}
    params: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    stream_usage: bool = True
    strict: bool = False
    developer: bool = False
    custom_tools: bool = False
    takes: tuple[str, ...] = ()
    header_values: dict[str, tuple[str, ...]] = {}
    conversation_header: str = ""
    source: str = ""
    docs: str = ""
    limit_queries: tuple[LimitQuery, ...] = ()


class Difference(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One key in which this rule's requests differ from recorded, accepted ones, with the reason."""

    key: str
    source: str


class Switch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What goes along with what compile sends: parameters (``{"thinking": {"keep": "all"}}``) and headers.

    ``asked``: only where a person asked for it; the endpoint has a good default of its own. ``unless`` are dotted paths
    of parameters that exclude it: where the request has one of them, it stays away.
    """

    params: dict[str, Any] = {}
    headers: dict[str, str] = {}
    asked: bool = False
    unless: tuple[str, ...] = ()


class Budget(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A token budget for reasoning: its dotted ``path``, the smallest and the largest value (0: none is known).

    ``below`` is the dotted path of the request's own output limit, which the budget must stay below; ``params`` go
    along with a budget.
    """

    path: str
    floor: int = 1
    ceiling: int = 0
    below: str = ""
    params: dict[str, Any] = {}


class Controls(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the neutral reasoning settings are said to this endpoint.

    ``effort``, ``display`` and ``verbosity`` map a neutral word to the parameters that say it; an empty table means
    that the word is known and refused, so it is not sent. An effort that the table or the model lacks goes out as the
    nearest one. ``effort_budgets`` are tokens of the budget that stand for an effort, where there are no words.

    ``display_with_tools`` are the words of ``display`` that are said otherwise where the request offers tools,
    ``display_headers`` the headers that go with a word of ``display``. ``summary`` are the words of
    ``reasoning.summary``, which take the place of those of ``display``.

    ``on`` and ``off`` are the parameters of ``reasoning.enabled``; ``always_on``: off is known to be refused.
    ``mixed``: the row is for models of all kinds, and those that do not reason may refuse the words, so that none are
    said unasked. ``off_hides``: no words of ``display`` go beside those of ``off``, which they would overrule.
    ``max_tokens`` is the dotted path of a token budget without small print, ``budget`` one with it. ``either``: effort
    and budget exclude each other, and the budget wins. ``aliases`` are dotted paths of further parameters that say the
    same, so that one of them suppresses ours.
    """

    effort: dict[str, dict[str, Any]] = {}
    effort_budgets: dict[str, int] = {}
    on: dict[str, Any] = {}
    off: dict[str, Any] = {}
    always_on: bool = False
    off_hides: bool = False
    mixed: bool = False
    max_tokens: str = ""
    budget: Budget | None = None
    either: bool = False
    aliases: tuple[str, ...] = ()
    display: dict[str, dict[str, Any]] = {}
    display_with_tools: dict[str, dict[str, Any]] = {}
    display_headers: dict[str, dict[str, str]] = {}
    summary: dict[str, dict[str, Any]] = {}
    verbosity: dict[str, dict[str, Any]] = {}


class Forbidden(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A parameter that the endpoint refuses: at dotted ``path``, with one of ``values`` (none given: with any).

    ``allowed`` are values it takes in spite of it.

    ``when``: only on requests that think, or only on those that do not. ``beside``: only in requests that have these
    parameters too (dotted path = value).
    """

    path: str
    reason: str
    values: tuple[Any, ...] = ()
    allowed: tuple[Any, ...] = ()
    when: Literal["thinking", "not-thinking", "always"] = "thinking"
    beside: dict[str, Any] = {}


class ServerState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a provider keeps a conversation: ``param`` names its last response; ``on`` and ``off`` are the switches."""

    param: str
    on: dict[str, Any] = {}
    off: dict[str, Any] = {}


class Guard(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who may read reasoning minted elsewhere.

    ``reads`` are glob patterns of further models whose blocks are valid, ``refuses`` of those that are not in spite of
    it. ``hosts`` are glob patterns of further base URLs whose blocks are valid.
    ``account``: blocks of another account are not valid; ``unknown_account``: what to do where two accounts are known
    only as different key hashes. ``end_user`` is the dotted path of the parameter that names an end user, where blocks
    of another are not valid.
    """

    reads: tuple[str, ...] = ()
    refuses: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    account: bool = False
    unknown_account: Literal["try", "drop"] = "try"
    end_user: str = ""


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an endpoint and model need of earlier reasoning. See ``docs/rules.md`` for each key.

    ``dialect``: a row for any endpoint holds for those of this dialect only.

    ``form``: how reasoning is written: a message field, ``reasoning_details``, tags in ``content``, or not at all.
    ``open_turn``/``later``: demand for the turn under way and for finished ones. ``reads_later``: what goes back of
    finished turns is read, and counted as input, without ``keep_switch`` too; ``reads_open``: so is that of the turn
    under way. ``scope``: which assistant
    messages ``must`` is about. ``placeholder`` with ``placeholder_on``: what stands in where there is nothing.
    ``keep_switch`` is emitted when reasoning of finished turns is sent, ``drop_switch`` when it is not; ``keeps_when``
    is a parameter (dotted path = value) by which the user's own request turns retention on. ``thinks_unless`` is the
    parameter by which thinking (and with it the demand) is off; ``thinks_when`` the one without which it is off (all
    pairs of one table, any of the tables). An empty ``field`` is the name the text came in. ``as_received``:
    from tags and details reasoning goes back in the form it came in, whatever ``form`` says. ``refusals`` are regular
    expressions found in the host's error texts when the reasoning sent back was wrong. ``leaked_calls`` names the
    markers of calls that this host is known to leave in the reasoning of these models; nothing: markers are text.

    With ``form = "native"`` reasoning goes back in its place, as the block it was. ``need_signature`` (glob patterns of
    wire types) names blocks that must not go without their opaque value; ``follower``: reasoning must have something
    behind it; ``calls_last``: nothing may stand between the calls of a response; ``tied``: ids of a response's items go
    only with all of its reasoning; ``prefix_bound``: a block is valid only behind what it was minted behind;
    ``signed_calls``: the first call of each response of the turn under way must have a signature, for which ``dummy``
    is the documented stand-in. ``system``: where system messages stand, if not where the dialect has them (``late``:
    on top, later ones among the messages; ``lead``: first among the messages, later ones told as the user's).

    ``off_with_tools``: the endpoint refuses tools together with reasoning, so that thinking is off where there are any.
    ``default_system`` stands on top where there is no system message. ``after_results`` is a message of the user's that
    stands between results and a system message, for models that take the latter for a part of the former.
    ``needs_tools``: where there were calls, tools must be offered; if none are wanted, those that were called are, with
    the parameters ``no_tools``.

    ``unconfirmed``: by key of this row (dotted where it is nested), what no provider documents and nobody is known to
    have tried.

    ``reasoning_field`` is the only response field that is read as reasoning; ``tags``: where in a text tags make
    reasoning of what stands between them.

    ``params`` and ``headers`` go with every request; ``limit_param`` is the output limit that must be given, and
    ``limit`` its value where the model's own is not known. ``forbids`` is refused before the network.
    ``cache_seconds``: for so long the provider keeps the beginning of a request that nobody asked to keep for longer.
    ``cache_asked``: by the name of a member anywhere in a request and its value, for how many seconds it asks.
    """

    id: str
    endpoint: str
    source: str
    since: str
    dialect: str = ""
    model: tuple[str, ...] = ("*",)
    form: Form = "none"
    field: str = "reasoning_content"
    as_received: bool = False
    also: tuple[str, ...] = ()
    open_turn: Demand = "never"
    later: Later = "never"
    reads_later: bool = True
    reads_open: bool = True
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
    drop_switch: Switch | None = None
    keeps_when: dict[str, Any] = {}
    thinks_unless: tuple[dict[str, Any], ...] = ()
    thinks_when: tuple[dict[str, Any], ...] = ()
    thinking_off: dict[str, Any] = {}
    thinking_only: tuple[str, ...] = ()
    guard: Guard = Guard()
    controls: Controls = Controls()
    reasoning_tokens: Literal["inside", "added", "unknown"] = "inside"
    reasoning_field: str = ""
    leaked_calls: Markers = ""
    tags: Where = "start"
    server_drop: Switch | None = None
    server_state: ServerState | None = None
    off_with_tools: bool = False
    follower: bool = False
    calls_last: bool = False
    tied: bool = False
    prefix_bound: bool = False
    signed_calls: bool = False
    dummy: str = ""
    system: SystemPlace = ""
    default_system: str = ""
    after_results: str = ""
    needs_tools: bool = False
    no_tools: dict[str, Any] = {}
    params: dict[str, Any] = {}
    headers: dict[str, str] = {}
    limit_param: str = ""
    limit: int = 0
    forbids: tuple[Forbidden, ...] = ()
    refusals: tuple[str, ...] = ()
    cache_seconds: int = 0
    cache_asked: dict[str, dict[str, int]] = {}
    unconfirmed: dict[str, str] = {}
    omits: tuple[Difference, ...] = ()
    adds: tuple[Difference, ...] = ()


def stand_ins(rule: Rule) -> tuple[MissingStep, ...]:
    """The steps of ``missing`` that are left where the endpoint did refuse a request without reasoning."""
    return tuple(step for step in rule.missing if step != "none")


class Overhead(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Tokens that a model's chat template adds to the texts of a request, as its provider counts them.

    For each ``request``, each ``message``, once where there are ``tools``, and for each ``tool``.
    """

    request: int = 0
    message: int = 0
    tools: int = 0
    tool: int = 0

    def tokens(self, messages: int, tools: int) -> int:
        """The tokens added to a request of so many messages and tools; none where there are no messages yet."""
        if not messages:
            return 0
        return self.request + messages * self.message + (self.tools + tools * self.tool if tools else 0)


class ModelInfo(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Facts about a model; 0 and empty mean unknown: no limit shown, no clamp."""

    model: str
    endpoint: str = "*"
    context: int = 0
    max_output: int = 0
    efforts: tuple[str, ...] = ()
    since: str = ""
    source: str = ""
    overhead: Overhead = Overhead()


class Served(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Names of models that places are known to serve, for lists; ``since`` is the day on which they were known."""

    endpoint: tuple[str, ...]
    models: tuple[str, ...]
    since: str
    source: str
