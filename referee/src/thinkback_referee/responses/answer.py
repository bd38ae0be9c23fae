"""A step as the output items of a response, with the ids and encrypted content that each host makes.

All of it is derived from a digest, so that it can be reproduced. How the items travel is for ``render``.
"""

from __future__ import annotations

import base64
import hashlib
import uuid
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

from ..jsons import JsonObject, as_object, as_text
from ..script import Step
from ..streams import CREATED, arguments_text, derived
from .request import Request

_SHORT = 21


def response_id(style: str, digest: str) -> str:
    """The id of a response."""
    match style:
        case "xai" | "uuid":
            return _uuid(digest, "response")
        case "temporary":
            return f"gen-{CREATED}-{digest[:20]}"
        case "short":
            return f"resp_{digest[:48]}"
        case _:
            return f"resp_{digest[:50]}"


def item_id(style: str, prefix: str, digest: str, index: int, copy: int = 0) -> str:
    """The id of an output item; ``copy`` tells the events apart where each has its own."""
    own = derived(digest, prefix, index)
    match style:
        case "xai":
            return f"{prefix}_{_uuid(digest, 'response')}" + (f"_{index}" if prefix == "fc" else "")
        case "rotating":
            data = hashlib.shake_256(derived(digest, prefix, index, copy).encode()).digest(96)
            return base64.b64encode(data).decode()
        case "temporary":
            return f"{prefix}_tmp_{own[:11]}"
        case "uuid":
            return _uuid(digest, prefix, index)
        case "short":
            return f"{prefix}_{own[:_SHORT]}"
        case _:
            # The items of a response share the first half of their ids with it.
            return f"{prefix}_{digest[:18]}{own[:32]}"


def call_id(style: str, digest: str, index: int) -> str:
    """What ties a call to its output."""
    seed = derived(digest, "call", index)
    if style == "xai":
        return f"call-{uuid.UUID(derived(digest, 'calls')[:32])}-{index}"
    return f"call_00_{seed[:20]}" if style == "uuid" else f"call_{seed[:24]}"


def ciphertext(cipher: str, digest: str, index: int, copy: int, thought: str) -> str:
    """Encrypted content: as long as its plain text asks for, and another one for every copy."""
    seed = derived(digest, "cipher", index, copy).encode()
    size = 96 + 16 * (len(thought.encode()) // 16)
    data = hashlib.shake_256(seed).digest(size)
    if cipher == "fernet":
        return base64.urlsafe_b64encode(b"\x80\x00\x00\x00\x00" + data).decode()
    return base64.b64encode(data).decode()


def _uuid(digest: str, *parts: object) -> str:
    return str(uuid.UUID(derived(digest, *parts)[:32]))


# The copies of an item: in the event that adds it, in the one that ends it, and in the whole response.
ADDED, DONE, WHOLE, DELTAS = 0, 1, 2, 3
_INCOMPLETE = MappingProxyType(
    {"length": "max_output_tokens", "max_output_tokens": "max_output_tokens", "content_filter": "content_filter"}
)
_PREFIXES = MappingProxyType(
    {"reasoning": "rs", "message": "msg", "function_call": "fc", "custom_tool_call": "ctc", "compaction": "cmp"}
)
_OPAQUE = ("reasoning", "compaction")


@dataclass(frozen=True, slots=True)
class Output:
    """One output item: reasoning, a message (``text`` or ``refusal``), a call with its arguments as ``text``, or a
    compaction, which is opaque. ``namespace`` is that of the tool that is called, where it is in one.
    """

    kind: str
    index: int
    text: str = ""
    refusal: str = ""
    phase: str = ""
    name: str = ""
    call_id: str = ""
    namespace: str = ""

    @property
    def parts(self) -> tuple[str, ...]:
        """The paragraphs, each a part of a summary."""
        return tuple(part for part in self.text.split("\n\n") if part)


@dataclass(frozen=True)
class Answer:
    """A step as the answer to a request; ``digest`` already depends on the account."""

    request: Request
    step: Step
    digest: str
    usage: JsonObject
    prompt: int = 0
    """How many words the model was given."""

    @cached_property
    def id(self) -> str:
        """The id of the response."""
        return response_id(self.request.profile.host.ids, self.digest)

    @property
    def incomplete(self) -> str:
        """Why the response is not complete; empty when it is."""
        return _INCOMPLETE.get(self.step.finish, "")

    @property
    def status(self) -> str:
        """How the response ended."""
        if self.step.finish == "failed":
            return "failed"
        return "incomplete" if self.incomplete else "completed"

    @cached_property
    def outputs(self) -> tuple[Output, ...]:
        """Unit by unit: reasoning, then the message, then the calls; before them a compaction, if any."""
        found = [Output("compaction", 0)] if self.request.compacts(self.prompt) else []
        for unit in (*self.step.earlier, self.step):
            found += self._outputs(unit, len(found))
        return tuple(found)

    def _outputs(self, step: Step, start: int) -> list[Output]:
        style, phased = self.request.profile.host.ids, self.request.profile.phase
        found: list[Output] = []
        if step.reasoning:
            found.append(Output("reasoning", start, step.reasoning))
        if step.text or step.refusal:
            last = step is self.step and not step.tool_calls
            phase = ("final_answer" if last else "commentary") if phased else ""
            found.append(Output("message", start + len(found), step.text, step.refusal, phase))
        for call in step.tool_calls:
            index = start + len(found)
            identifier = call.id or call_id(style, self.digest, index)
            space, tool = self.request.added_tools.get(call.name, ("", {}))
            is_custom = tool.get("type") == "custom"
            text = as_text(as_object(call.arguments).get("input")) if is_custom else arguments_text(call)
            kind = "custom_tool_call" if is_custom else "function_call"
            found.append(Output(kind, index, text, name=call.name, call_id=identifier, namespace=space))
        return found

    def item_id(self, output: Output, copy: int) -> str:
        """The id of an item in one of its copies."""
        style = self.request.profile.host.ids
        return item_id(style, _PREFIXES[output.kind], self.digest, output.index, copy)

    def carrier(self, output: Output, copy: int) -> str:
        """The encrypted content of an item in one of its copies; empty where there is none."""
        if output.kind not in _OPAQUE or (output.kind == "reasoning" and not self.request.encrypts):
            return ""
        cipher = self.request.profile.host.cipher
        return ciphertext(cipher, self.digest, output.index, copy, output.text)

    def item(self, output: Output, copy: int) -> JsonObject:
        """An item as it stands in one of its copies; the one that adds it is still empty."""
        shape = {
            "reasoning": self._reasoning,
            "message": self._message,
            "function_call": self._call,
            "custom_tool_call": self._call,
            "compaction": self._compaction,
        }
        return shape[output.kind](output, copy)

    def _compaction(self, output: Output, copy: int) -> JsonObject:
        return {
            "id": self.item_id(output, copy),
            "type": "compaction",
            "encrypted_content": self.carrier(output, copy),
        }

    def _reasoning(self, output: Output, copy: int) -> JsonObject:
        profile = self.request.profile
        item: JsonObject = {"id": self.item_id(output, copy), "type": "reasoning", "summary": []}
        if profile.host.item_status:
            item["status"] = "in_progress" if copy == ADDED else "completed"
        if profile.raw:
            text = [{"type": "reasoning_text", "text": output.text}]
            item["content"] = [] if copy == ADDED else text
        elif self.request.summarizes and copy != ADDED:
            item["summary"] = [{"type": "summary_text", "text": part} for part in output.parts]
        if carrier := self.carrier(output, copy):
            item["encrypted_content"] = carrier
        return {**item, "format": profile.format} if profile.format else item

    def _message(self, output: Output, copy: int) -> JsonObject:
        item: JsonObject = {
            "id": self.item_id(output, copy),
            "type": "message",
            "status": "in_progress" if copy == ADDED else "incomplete" if self.incomplete else "completed",
            "role": "assistant",
            "content": [] if copy == ADDED else [part_of(output)],
        }
        return {**item, "phase": output.phase} if output.phase else item

    def _call(self, output: Output, copy: int) -> JsonObject:
        item: JsonObject = {
            "id": self.item_id(output, copy),
            "type": output.kind,
            "status": "in_progress" if copy == ADDED else "completed",
            "arguments" if output.kind == "function_call" else "input": "" if copy == ADDED else output.text,
            "call_id": output.call_id,
            "name": output.name,
        }
        return {**item, "namespace": output.namespace} if output.namespace else item


def part_of(output: Output) -> JsonObject:
    """The one part of a message."""
    if output.refusal:
        return {"type": "refusal", "refusal": output.refusal}
    return {"type": "output_text", "annotations": [], "logprobs": [], "text": output.text}
