"""Is the body well formed? Its fields, the thinking object, system, tools, messages, blocks, and results of calls.

Texts that the reference or a recording does not show are marked (text unconfirmed).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from ..jsons import JsonObject, as_list, as_object, as_objects, as_text, names
from ..verdict import Verdict
from .profiles import (
    BINDING_BETA,
    CLEARING_BETA,
    COMPACTING_BETA,
    FALLBACK_BETA,
    SHAPING_BETA,
    THREADS_BETA,
    TURN_BETAS,
    UPDATES_BETA,
)
from .refusals import extra, refuse, required, wrong
from .request import THINKING, Block, Caller, Request, blocks_of

# Widely reported texts, not in the reference (text unconfirmed).
EMPTY_TEXT = "messages: text content blocks must be non-empty"
EMPTY_MESSAGE = (
    "messages.{index}: all messages must have non-empty content except for the optional final assistant message"
)
NO_SYSTEM_ROLE = (
    'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, '
    'not "system" as an input message role.'
)
FIRST_ROLE = 'messages: first message must use the "user" role'
UNANSWERED = (
    "messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after: {ids}. "
    "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
)
STRAY = (
    "{path}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. "
    "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
)
TWICE = "{path}: each tool_use must have a single result. Found multiple `tool_result` blocks with id: {id}"
NOT_UNIQUE = "messages: `tool_use` ids must be unique"
NO_TOOLS = "Requests which include `tool_use` or `tool_result` blocks must define tools"
# The reference's own texts.
ENDS_IN_THINKING = "messages.{index}: The final block in an assistant message cannot be `{kind}`."
NO_SIGNATURE = "{path}.thinking.signature: Field required"
BAD_SIGNATURE = "{path}.thinking.signature.str: Input should be a valid string"
# Texts unconfirmed.
NO_MESSAGES = "messages: at least one message is required"
BAD_TYPE = "thinking: Input tag '{kind}' found using 'type' does not match any of the expected tags: {tags}"
EMPTY_SYSTEM = "system: text content blocks must be non-empty"
REPEATED_NAME = "tools: Tool names must be unique."
OWN = (NO_MESSAGES, BAD_TYPE, EMPTY_SYSTEM, REPEATED_NAME, "thinking.{kind}.display: Input should be {names}")
_BODY = names(
    "model messages max_tokens system tools tool_choice thinking output_config temperature top_p top_k stop_sequences "
    "stream metadata service_tier container mcp_servers context_management cache_control inference_geo speed "
    "billing_policy compaction diagnostics fallbacks thread user_profile_id"
)
# Fields that are known with a beta alone (types of anthropic 2.12).
_OF_BETA: Mapping[str, str] = MappingProxyType(
    {
        "context_management": CLEARING_BETA,
        "thread": THREADS_BETA,
        "compaction": COMPACTING_BETA,
        "fallbacks": FALLBACK_BETA,
    }
)
_SHOWN = names("type display block_binding")
_CONFIG_KEYS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "enabled": _SHOWN | {"budget_tokens"},
        "adaptive": _SHOWN,
        "disabled": names("type"),
        "between_tools": _SHOWN,
    }
)
_MARKED = names("type cache_control")
_KEYS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "text": _MARKED | {"text", "citations"},
        "thinking": names("type thinking signature"),
        "redacted_thinking": names("type data"),
        "tool_use": _MARKED | {"id", "name", "input", "caller"},
        "tool_result": _MARKED | {"tool_use_id", "content", "is_error"},
    }
)
_ASSISTANT_ONLY = names("thinking redacted_thinking tool_use server_tool_use mcp_tool_use")
_USER_ONLY = names("tool_result image document search_result container_upload")
_OTHERS = _USER_ONLY | names(
    "server_tool_use mcp_tool_use tool_reference tool_addition tool_removal compaction fallback connector_text"
)
_ROLES = ("user", "assistant")
_MESSAGE = names("role content")


def message_faults(caller: Caller, late_system: bool, messages: object) -> Iterator[Verdict]:
    """What is wrong with messages, in their order."""
    known = _MESSAGE if TURN_BETAS.isdisjoint(caller.betas) else _MESSAGE | {"output_config"}
    for index, value in enumerate(as_list(messages)):
        message = as_object(value)
        role = as_text(message.get("role"))
        if role == "system" and not late_system:
            yield refuse(NO_SYSTEM_ROLE, f"system message at messages.{index}")
        if role not in (*_ROLES, "system"):
            yield wrong(f"messages.{index}.role", "'user' or 'assistant'")
        if not index and role != "user":
            yield refuse(FIRST_ROLE, "first message is not the user's")
        yield from (extra(f"messages.{index}.{name}") for name in message if name not in known)
        content = message.get("content")
        if not isinstance(content, str | list):
            yield (
                required(f"messages.{index}.content")
                if content is None
                else wrong(f"messages.{index}.content", "a valid list")
            )
        final = index == len(as_list(messages)) - 1 and role == "assistant"
        # Claude Code sends an effort in a system message that says nothing else.
        if not content and not final and not (role == "system" and "output_config" in message):
            yield refuse(EMPTY_MESSAGE.format(index=index), f"empty messages.{index}")
        for block in blocks_of(index, content) if isinstance(content, list) else ():
            yield from _block_faults(caller.host.signed, role, block)


def _block_faults(signed: bool, role: str, block: Block) -> Iterator[Verdict]:
    kind, raw = block.kind, block.raw
    if kind not in _KEYS and kind not in _OTHERS and not kind.endswith("_tool_result"):
        tags = ", ".join(f"'{tag}'" for tag in sorted({*_KEYS, *_OTHERS}))
        text = f"{block.path}: Input tag '{kind}' found using 'type' does not match any of the expected tags: {tags}"
        yield refuse(text, f"unknown block at {block.path}")
    for name in raw if kind in _KEYS else ():
        if name not in _KEYS[kind]:
            yield extra(f"{block.path}.{kind}.{name}")
    misplaced = _ASSISTANT_ONLY if role == "user" else _USER_ONLY if role == "assistant" else frozenset()
    if kind in misplaced:
        place = "assistant" if role == "user" else "user"
        yield refuse(f"{block.path}: `{kind}` blocks can only be in `{place}` messages", f"misplaced {block.path}")
    if kind == "thinking" and signed and "signature" not in raw:
        yield refuse(NO_SIGNATURE.format(path=block.path), f"unsigned {block.path}")
    if kind == "thinking" and signed and not isinstance(raw["signature"], str):
        yield refuse(BAD_SIGNATURE.format(path=block.path), f"bad signature at {block.path}")
    yield from _content_faults(block)


def _content_faults(block: Block) -> Iterator[Verdict]:
    """What is wrong with the members that blocks of its type must have."""
    raw, path = block.raw, f"{block.path}.{block.kind}"
    match block.kind:
        case "text":
            text = raw.get("text")
            if not isinstance(text, str):
                yield required(f"{path}.text") if text is None else wrong(f"{path}.text", "a valid string")
            if not text:
                yield refuse(EMPTY_TEXT, f"empty text at {block.path}")
        case "thinking" if not isinstance(raw.get("thinking"), str):
            yield required(f"{path}.thinking")
        case "redacted_thinking" if not isinstance(raw.get("data"), str):
            yield required(f"{path}.data")
        case "tool_use":
            for name in ("id", "name"):
                if not as_text(raw.get(name)):
                    yield required(f"{path}.{name}")
            if not isinstance(raw.get("input"), dict):
                yield wrong(f"{path}.input", "a valid dictionary")
        case "tool_result":
            if not as_text(raw.get("tool_use_id")):
                yield required(f"{path}.tool_use_id")
            if any(part.get("type") == "text" and not part.get("text") for part in as_objects(raw.get("content"))):
                yield refuse(EMPTY_TEXT, f"empty text in {block.path}")


def ends_in_thinking(request: Request) -> Iterator[Verdict]:
    """Refuse assistant messages whose last block is a thought."""
    for message in request.assistants:
        if message.blocks and (kind := message.blocks[-1].kind) in THINKING:
            text = ENDS_IN_THINKING.format(index=message.index, kind=kind)
            yield refuse(text, f"thinking comes last at messages.{message.index}")


def pair_faults(request: Request) -> Iterator[Verdict]:
    """Refuse calls without exactly one result in the next user message, results without a call, and calls without
    tools."""
    messages = request.messages
    made = [call for message in messages for call in message.calls]
    if len(set(made)) < len(made):
        yield refuse(NOT_UNIQUE, "repeated call id")
    owner, wanted = 0, list[str]()
    for message in messages:
        answered = [block for block in message.blocks if block.kind == "tool_result"]
        for block in answered:
            yield from _answer_faults(block, answered, wanted)
        # Results come first in their message, as each must follow its call immediately.
        if wanted and (len(answered) < len(wanted) or message.blocks[len(answered) - 1].kind != "tool_result"):
            break
        owner, wanted = message.index, list(message.calls)
    if wanted:
        left = [call for call in wanted if owner + 1 >= len(messages) or call not in messages[owner + 1].results]
        text = UNANSWERED.format(index=owner, ids=", ".join(left or wanted))
        yield refuse(text, f"unanswered call at messages.{owner}")
    used = any(message.calls or message.results for message in messages)
    if used and not request.body.get("tools"):
        yield refuse(NO_TOOLS, "calls without tools")


def _answer_faults(block: Block, answered: list[Block], wanted: list[str]) -> Iterator[Verdict]:
    call = as_text(block.raw.get("tool_use_id"))
    if call not in wanted:
        yield refuse(STRAY.format(path=block.path, id=call), f"result without a call at {block.path}")
    if sum(other.raw.get("tool_use_id") == call for other in answered) > 1:
        yield refuse(TWICE.format(path=block.path, id=call), f"repeated result at {block.path}")


def body_faults(caller: Caller, late_system: bool, body: JsonObject) -> Iterator[Verdict]:
    """Refusals of bodies that do not have the shape of a Messages request."""
    yield from _member_faults(caller, body)
    yield from message_faults(caller, late_system, body["messages"])


def _member_faults(caller: Caller, body: JsonObject) -> Iterator[Verdict]:
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
    for name, beta in _OF_BETA.items():
        if body.get(name) is not None and beta not in caller.betas:
            yield extra(name)
    thread = as_object(body.get("thread"))
    if thread and thread.get("type") not in ("create", "continue"):
        yield wrong("thread.type", "'create' or 'continue'")
    if thread.get("type") == "continue" and not as_text(thread.get("previous_message_id")):
        yield required("thread.previous_message_id")
    if body.get("compaction") is not None and body.get("context_management") is not None:
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
    for index, tool in enumerate(as_objects(tools)):
        custom = tool.get("type") in (None, "custom")
        if custom and not names[index]:
            yield required(f"tools.{index}.custom.name")
        if custom and not isinstance(tool.get("input_schema"), dict):
            yield required(f"tools.{index}.custom.input_schema")
    if len(set(names)) < len(names):
        yield refuse(REPEATED_NAME, "repeated tool name")


def _positive(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
