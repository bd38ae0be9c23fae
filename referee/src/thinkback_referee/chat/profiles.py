"""Which hosts and models the referee plays, as data: one row per model, and what each does about reasoning.

Texts in quotes are the providers' own where they are known. Where no recording or report shows the text, the row says
"text unconfirmed" and the wording is the referee's.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType


class Requires(Enum):
    """Which assistant messages must carry their reasoning while thinking is on."""

    NOTHING = "nothing"
    OPEN_TURN_CALLS = "tool-call messages after the last user message"
    TOOL_TURNS = "tool-call messages of the open turn, all messages of turns with calls, all messages given tools"
    CALLS = "every tool-call message"


class Keeps(Enum):
    """Which returned reasoning the scripted model gets to see, as the provider would render it into the prompt."""

    NOTHING = "nothing"
    OPEN_TURN = "the open turn"
    TOOL_TURNS = "the open turn and turns that had tool calls"
    ON_REQUEST = "the open turn, or everything with thinking.keep = all"
    EVERYTHING = "everything"


class Switch(Enum):
    """What in a request turns thinking on or off."""

    FIXED = "nothing does"
    THINKING = "thinking.type"
    EFFORT = "reasoning_effort"


_COMMON = frozenset({"role", "content", "name", "tool_calls", "tool_call_id"})
# The official OpenAI client dumps these into every assistant message, mostly as null.
_CLIENT_DUMP = frozenset({"refusal", "annotations", "audio", "function_call"})
COMMON_FIELDS = _COMMON | _CLIENT_DUMP
"""The message fields of chat completions, whoever serves them."""
_ROLES = ("system", "user", "assistant", "tool")


@dataclass(frozen=True, slots=True)
class Host:
    """One provider: how it words errors, which message fields it knows, and the small print of its streams."""

    name: str
    fields: frozenset[str]
    changed: str
    """Refusal of missing or altered reasoning; ``{index}`` is the message's index."""
    unauthorized: tuple[str, str, str | None]
    """Message, type and code of a 401."""
    unknown_model: tuple[str, str, str | None]
    """Message (``{model}``), type and code of a 404."""
    roles: tuple[str, ...] = _ROLES
    last_role: str = "The last message must have the role user or tool, or be an assistant message marked as a prefix"
    usage_chunk: bool = False
    """With ``stream_options.include_usage``: repeat usage in an extra chunk with empty ``choices``."""
    call_prefix: str = "call_"
    base_path: str = ""
    usage_on_request: bool = False
    """Usage comes only in the extra chunk, and only where it is asked for."""
    unknown_parameter: str = "unknown parameter: {name}"
    bad_effort: str = "reasoning_effort {effort} is not supported for this model{listed}"
    bad_temperature: str = "invalid temperature: only {pinned:g} is allowed for this model"


@dataclass(frozen=True, slots=True)
class Profile:
    """One model at one host."""

    host: Host
    model: str
    served: str = ""
    """The name that responses report, where it differs from the requested one."""
    field: str = "reasoning_content"
    """Where reasoning travels: a message field, or ``thinking`` for chunks inside ``content``."""
    requires: Requires = Requires.NOTHING
    keeps: Keeps = Keeps.OPEN_TURN
    switch: Switch = Switch.FIXED
    thinks: bool = True
    """Whether it thinks when the request does not say."""
    placeholders: tuple[str, ...] = ()
    """What is taken where reasoning is required, in its place."""
    forbids: frozenset[str] = frozenset()
    forbidden_text: str = ""
    tools_refused: str = ""
    tools_refused_while_thinking: str = ""
    choices_refused: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Refusals by kind of ``tool_choice`` (``required``, ``specified``) while thinking."""
    temperature: float | None = None
    """The only temperature allowed while thinking."""
    unknown_parameters: frozenset[str] = frozenset()
    efforts: tuple[str, ...] = ()
    formats: bool = False
    """Whether ``reasoning_format`` is heeded."""

    @property
    def reported(self) -> str:
        """The model name in responses."""
        return self.served or self.model


DEEPSEEK = Host(
    name="deepseek",
    # A recorded request carried `reasoning` beside `reasoning_content` and was accepted.
    fields=_COMMON | _CLIENT_DUMP | {"reasoning_content", "reasoning", "prefix"},
    changed="The `reasoning_content` in the thinking mode must be passed back to the API.",
    unauthorized=("Authentication Fails (governor)", "authentication_error", "invalid_request_error"),
    unknown_model=("Model Not Exist: {model}", "invalid_request_error", "invalid_request_error"),
    call_prefix="call_00_",
)
KIMI = Host(
    name="kimi",
    fields=_COMMON | _CLIENT_DUMP | {"reasoning_content", "partial"},
    changed="thinking is enabled but reasoning_content is missing in assistant tool call message at index {index}",
    unauthorized=("Invalid Authentication", "invalid_authentication_error", None),
    unknown_model=("Not found the model {model} or Permission denied", "resource_not_found_error", None),
    usage_chunk=True,
)
GROQ = Host(
    name="groq",
    fields=_COMMON | _CLIENT_DUMP | {"reasoning"},
    changed="'messages.{index}' : property 'reasoning' is not the text that was issued",  # text unconfirmed
    unauthorized=("Invalid API Key", "invalid_request_error", "invalid_api_key"),
    unknown_model=(
        "The model `{model}` does not exist or you do not have access to it.",
        "invalid_request_error",
        "model_not_found",
    ),
    roles=(*_ROLES, "developer"),
    usage_chunk=True,
    call_prefix="fc_",
)
MISTRAL = Host(
    name="mistral",
    fields=_COMMON | {"prefix"},
    changed="Thinking chunk of messages[{index}] is not the one that was issued",  # text unconfirmed
    unauthorized=("Unauthorized", "unauthorized", None),
    unknown_model=("Invalid model: {model}", "invalid_model", "1500"),
    last_role="Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant",
    call_prefix="",
)
# Chat completions of OpenAI: reasoning neither comes back nor may be sent.
OPENAI = Host(
    name="openai",
    fields=_COMMON | _CLIENT_DUMP,
    changed="Reasoning of messages[{index}] is not accepted",  # never so: the field itself is refused
    unauthorized=("Incorrect API key provided.", "invalid_request_error", "invalid_api_key"),
    unknown_model=(
        "The model `{model}` does not exist or you do not have access to it.",
        "invalid_request_error",
        "model_not_found",
    ),
    roles=(*_ROLES, "developer"),
    usage_chunk=True,
    base_path="/v1",
    usage_on_request=True,
    unknown_parameter="Unknown parameter: '{name}'.",
    # text unconfirmed
    bad_effort="Unsupported value: 'reasoning_effort' does not support '{effort}' with this model{listed}.",
    bad_temperature=(
        "Unsupported value: 'temperature' does not support {value} with this model. "
        "Only the default ({pinned:g}) value is supported."
    ),
)
# text unconfirmed; that it is a 400 was documented while R1 was current
NO_INPUT_REASONING = "reasoning_content is not allowed in the input messages of {model}"
_HOSTS = (DEEPSEEK, KIMI, GROQ, MISTRAL, OPENAI)
HOSTS: MappingProxyType[str, Host] = MappingProxyType({host.name: host for host in _HOSTS})

# Reports differ about the empty text: one gateway saw it refused, a later live test saw it taken.
_BLANKS = (" ", "")
_NO_FORCED_CALL = "Thinking mode does not support this tool_choice"
_NO_FORCED_CALL_KIMI = "tool_choice '{kind}' is incompatible with thinking enabled"


def _choices(text: str, *kinds: str) -> MappingProxyType[str, str]:
    return MappingProxyType({kind: text.format(kind=kind) for kind in kinds})


def _deepseek_v4(model: str, *, served: str = "", thinks: bool = True) -> Profile:
    return Profile(
        host=DEEPSEEK,
        model=model,
        served=served,
        requires=Requires.TOOL_TURNS,
        placeholders=_BLANKS,
        keeps=Keeps.TOOL_TURNS,
        switch=Switch.THINKING,
        thinks=thinks,
        choices_refused=_choices(_NO_FORCED_CALL, "required", "specified"),
    )


def _kimi(model: str, keeps: Keeps, switch: Switch, *kinds: str, unknown: frozenset[str] = frozenset()) -> Profile:
    return Profile(
        host=KIMI,
        model=model,
        requires=Requires.CALLS,
        keeps=keeps,
        switch=switch,
        # Reported: litellm sends a blank.
        placeholders=(" ",),
        choices_refused=_choices(_NO_FORCED_CALL_KIMI, *kinds),
        temperature=1,
        unknown_parameters=unknown,
    )


def _groq(model: str, *, formats: bool = False, switch: Switch = Switch.FIXED) -> Profile:
    return Profile(host=GROQ, model=model, field="reasoning", formats=formats, switch=switch)


def _groq_plain(model: str) -> Profile:
    forbids = frozenset({"reasoning"})
    return Profile(host=GROQ, model=model, field="reasoning", thinks=False, keeps=Keeps.NOTHING, forbids=forbids)


def _mistral(model: str, *, switch: Switch, thinks: bool) -> Profile:
    return Profile(
        host=MISTRAL,
        model=model,
        field="thinking",
        keeps=Keeps.EVERYTHING,
        switch=switch,
        thinks=thinks,
        efforts=("high", "none"),
    )


_NO_TOOLS = (
    "Function tools with reasoning_effort are not supported for {model} in /v1/chat/completions. To use function "
    "tools, use /v1/responses or set reasoning_effort to 'none'."
)
_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


def _openai(model: str, first: str, last: str, *, thinks: bool = True, tools: bool = True) -> Profile:
    """A row with the efforts from the first to the last named; ``minimal`` only where it is the first."""
    efforts = _EFFORTS[_EFFORTS.index(first) : _EFFORTS.index(last) + 1]
    return Profile(
        host=OPENAI,
        model=model,
        field="hidden",
        keeps=Keeps.NOTHING,
        switch=Switch.EFFORT,
        thinks=thinks,
        tools_refused_while_thinking="" if tools else _NO_TOOLS,
        temperature=1,
        unknown_parameters=frozenset({"reasoning", "include", "thinking", "input", "include_reasoning"}),
        efforts=tuple(effort for effort in efforts if effort != "minimal" or first == "minimal"),
    )


_ROWS = (
    Profile(
        host=DEEPSEEK,
        model="deepseek-r1",
        keeps=Keeps.NOTHING,
        forbids=frozenset({"reasoning_content"}),
        forbidden_text=NO_INPUT_REASONING,
        tools_refused="{model} does not support Function Calling",
    ),
    Profile(
        host=DEEPSEEK,
        model="deepseek-v3.2",
        requires=Requires.OPEN_TURN_CALLS,
        placeholders=_BLANKS,
        switch=Switch.THINKING,
        choices_refused=_choices(_NO_FORCED_CALL, "required", "specified"),
    ),
    _deepseek_v4("deepseek-v4-pro"),
    _deepseek_v4("deepseek-v4-flash"),
    # The two old names are served by V4 flash in all recordings, with thinking off and on by default.
    _deepseek_v4("deepseek-chat", served="deepseek-v4-flash", thinks=False),
    _deepseek_v4("deepseek-reasoner", served="deepseek-v4-flash"),
    _kimi("kimi-k2-thinking", Keeps.OPEN_TURN, Switch.FIXED, "required", "specified"),
    _kimi("kimi-k2.6", Keeps.ON_REQUEST, Switch.THINKING, "required", "specified"),
    _kimi("kimi-k2.7-code", Keeps.ON_REQUEST, Switch.FIXED, "required", "specified"),
    # K3 takes no `thinking` object, so nothing can ask it to keep: that it keeps everything is unconfirmed.
    _kimi("kimi-k3", Keeps.EVERYTHING, Switch.FIXED, "specified", unknown=frozenset({"thinking"})),
    _groq("openai/gpt-oss-120b"),
    _groq("qwen/qwen3-32b", formats=True, switch=Switch.EFFORT),
    _groq("deepseek-r1-distill-llama-70b", formats=True),
    _groq_plain("llama-3.3-70b"),
    _groq_plain("llama-3.3-70b-versatile"),
    _mistral("mistral-small-latest", switch=Switch.EFFORT, thinks=False),
    _mistral("magistral-medium-latest", switch=Switch.FIXED, thinks=True),
    Profile(
        host=OPENAI,
        model="gpt-4o",
        field="hidden",
        thinks=False,
        keeps=Keeps.NOTHING,
        unknown_parameters=frozenset({"reasoning_effort", "reasoning", "thinking"}),
    ),
    _openai("gpt-5", "minimal", "high"),
    _openai("gpt-5-mini", "minimal", "high"),
    _openai("gpt-5.1", "none", "high", thinks=False),
    _openai("gpt-5.4", "none", "xhigh", thinks=False, tools=False),
    _openai("gpt-5.5", "none", "xhigh", tools=False),
    # max is refused here on every model, whatever it takes elsewhere
    _openai("gpt-5.6-sol", "none", "xhigh", tools=False),
    _openai("gpt-6-sol", "none", "xhigh", tools=False),
    _openai("gpt-6-astra", "low", "xhigh", tools=False),
)
PROFILES: MappingProxyType[tuple[str, str], Profile] = MappingProxyType(
    {(row.host.name, row.model): row for row in _ROWS}
)


def profile_for(host: str, model: str) -> Profile | None:
    """The row of a model at a host, or None when the referee does not play it."""
    return PROFILES.get((host, model))


def models_of(host: str) -> list[str]:
    """The model names that a host lists."""
    return [model for name, model in PROFILES if name == host]
