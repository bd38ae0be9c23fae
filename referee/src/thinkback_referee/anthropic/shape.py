"""Is the body well formed? Its fields, the thinking object, the system prompt and the tools.

Texts that the reference or a recording does not show are marked here and in the modules beside it (text unconfirmed).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from ..jsons import JsonObject, as_list, as_object, as_text
from ..verdict import Verdict
from .blocks import message_faults
from .profiles import BINDING_BETA, CLEARING_BETA, SHAPING_BETA, UPDATES_BETA
from .refusals import extra, refuse, required, wrong
from .request import Caller

# Texts unconfirmed.
NO_MESSAGES = "messages: at least one message is required"
BAD_TYPE = "thinking: Input tag '{kind}' found using 'type' does not match any of the expected tags: {tags}"
EMPTY_SYSTEM = "system: text content blocks must be non-empty"
REPEATED_NAME = "tools: Tool names must be unique."
OWN = (NO_MESSAGES, BAD_TYPE, EMPTY_SYSTEM, REPEATED_NAME, "thinking.{kind}.display: Input should be {names}")
_BODY = frozenset(
    {
        "model",
        "messages",
        "max_tokens",
        "system",
        "tools",
        "tool_choice",
        "thinking",
        "output_config",
        "temperature",
        "top_p",
        "top_k",
        "stop_sequences",
        "stream",
        "metadata",
        "service_tier",
        "container",
        "mcp_servers",
        "context_management",
        "cache_control",
        "inference_geo",
        "speed",
    }
)
_SHOWN = frozenset({"type", "display", "block_binding"})
_CONFIG_KEYS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "enabled": _SHOWN | {"budget_tokens"},
        "adaptive": _SHOWN,
        "disabled": frozenset({"type"}),
        "between_tools": _SHOWN,
    }
)


def malformed(caller: Caller, late_system: bool, body: JsonObject) -> Verdict | None:
    """Refuse bodies that do not have the shape of a Messages request.

    Only the first fault is asked for, so each check may rely on those before it.
    """
    fault = next(_body_faults(caller, body), None)
    return fault or next(message_faults(caller.host.signed, late_system, body["messages"]), None)


def _body_faults(caller: Caller, body: JsonObject) -> Iterator[Verdict]:
    # What `output_config.format` was called at first, and still is with this beta.
    known = _BODY | {"output_format"} if SHAPING_BETA in caller.betas else _BODY
    yield from (extra(name) for name in body if name not in known)
    if not isinstance(body.get("messages"), list):
        yield required("messages") if "messages" not in body else wrong("messages", "a valid list")
    if not body["messages"]:
        yield refuse(NO_MESSAGES, "no messages")
    if "max_tokens" not in body:
        yield required("max_tokens")
    if not _positive(body["max_tokens"]):
        yield refuse("max_tokens: Input should be greater than or equal to 1", "bad max_tokens")
    if not isinstance(body.get("stream", False), bool):
        yield wrong("stream", "a valid boolean")
    yield from _config_faults(caller, as_object(body.get("thinking")), body.get("thinking") is not None)
    if body.get("context_management") is not None and CLEARING_BETA not in caller.betas:
        yield extra("context_management")
    yield from _system_faults(body.get("system"))
    yield from _offer_faults(as_list(body.get("tools")))


def _config_faults(caller: Caller, config: Mapping[str, object], given: bool) -> Iterator[Verdict]:
    kind = as_text(config.get("type"))
    if given and kind not in _CONFIG_KEYS:
        tags = ", ".join(f"'{tag}'" for tag in sorted(_CONFIG_KEYS))
        yield refuse(BAD_TYPE.format(kind=kind, tags=tags), f"bad type of thinking {kind}")
    for name in config:
        bound = name == "block_binding" and BINDING_BETA not in caller.betas
        if bound or name not in _CONFIG_KEYS[kind]:
            yield extra(f"thinking.{kind}.{name}")
    displays = ("summarized", "omitted", *(("updates",) if UPDATES_BETA in caller.betas else ()))
    if config.get("display") not in (None, *displays):
        yield wrong(f"thinking.{kind}.display", " or ".join(f"'{name}'" for name in displays))
    behaviour = as_object(config.get("block_binding")).get("prefix_mismatch_behavior", "error")
    if behaviour not in ("error", "drop_block"):
        yield wrong(f"thinking.{kind}.block_binding.prefix_mismatch_behavior", "'error' or 'drop_block'")


def _system_faults(system: object) -> Iterator[Verdict]:
    if system is not None and not isinstance(system, str | list):
        yield wrong("system", "a valid string or list")
    for index, block in enumerate(as_list(system)):
        if not as_text(as_object(block).get("text")):
            yield refuse(EMPTY_SYSTEM, f"empty system.{index}")


def _offer_faults(tools: object) -> Iterator[Verdict]:
    names = [as_text(as_object(tool).get("name")) for tool in as_list(tools)]
    for index, tool in enumerate(map(as_object, as_list(tools))):
        custom = tool.get("type") in (None, "custom")
        if custom and not names[index]:
            yield required(f"tools.{index}.custom.name")
        if custom and not isinstance(tool.get("input_schema"), dict):
            yield required(f"tools.{index}.custom.input_schema")
    if len(set(names)) < len(names):
        yield refuse(REPEATED_NAME, "repeated tool name")


def _positive(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
