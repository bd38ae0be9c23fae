"""Bedrock's Converse with Claude behind it: reasoning content first and signed, frames instead of lines."""

from __future__ import annotations

import binascii
import json
from typing import Any

from tests.world.anthropic import BOUND
from tests.world.mind import Answer, Ask, Json, Memory, Refused, dumps


def frame(kind: str, payload: Json) -> bytes:
    """One message of an event stream of AWS."""
    headers = b""
    for name, value in ((":event-type", kind), (":content-type", "application/json"), (":message-type", "event")):
        headers += bytes([len(name)]) + name.encode() + b"\x07" + len(value).to_bytes(2, "big") + value.encode()
    body = dumps(payload)
    prelude = (16 + len(headers) + len(body)).to_bytes(4, "big") + len(headers).to_bytes(4, "big")
    prelude += binascii.crc32(prelude).to_bytes(4, "big")
    message = prelude + headers + body
    return message + binascii.crc32(message).to_bytes(4, "big")


def _value(block: Json) -> str:
    inner = block["reasoningContent"]
    return str((inner.get("reasoningText") or {}).get("signature") or inner.get("redactedContent"))


class Bedrock:
    """Signs with the account; the newest Claudes bind their thoughts to the prefix."""

    dialect = "bedrock"
    streams_as = "application/vnd.amazon.eventstream"

    def ask(self, path: str, body: Json) -> Ask:
        messages = body["messages"]
        asked = [
            at
            for at, each in enumerate(messages)
            if each["role"] == "user" and any("text" in b for b in each["content"])
        ]
        last = asked[-1] if asked else -1
        results = sum("toolResult" in block for each in messages[last + 1 :] for block in each["content"])
        calls = sum("toolUse" in block for each in messages for block in each["content"])
        tools = tuple(
            each["toolSpec"]["name"] for each in (body.get("toolConfig") or {}).get("tools") or () if "toolSpec" in each
        )
        question = "".join(block.get("text") or "" for block in messages[last]["content"]) if asked else ""
        model = path.rpartition("/model/")[2].partition("/")[0]
        return Ask(model, question, results, calls, tools, path.endswith("/converse-stream"))

    def prefix(self, body: Json) -> Any:
        return self._prefix(body, body["messages"])

    @staticmethod
    def _prefix(body: Json, messages: list[Json]) -> Any:
        kept = [
            (each["role"], [b for b in each["content"] if "reasoningContent" not in b and "cachePoint" not in b])
            for each in messages
        ]
        chain = [_value(b) for each in messages for b in each["content"] if "reasoningContent" in b]
        tools = [each for each in (body.get("toolConfig") or {}).get("tools") or () if "cachePoint" not in each]
        return json.dumps([body.get("system") or [], tools]), json.dumps(kept), chain

    def check(self, body: Json, ask: Ask, account: str, memory: Memory) -> None:
        """Anthropic's rules, in the words of the service."""
        thinks = (body.get("additionalModelRequestFields") or {}).get("thinking") or {}
        for at, message in enumerate(body["messages"]):
            for number, block in enumerate(message["content"]):
                if "reasoningContent" not in block:
                    continue
                if message["role"] == "user" or "claude" not in ask.model:
                    raise self._error(
                        "User messages cannot contain reasoning content. Please remove the reasoning content and try "
                        "again."
                    )
                known = memory.opaque.get(_value(block))
                where = f"messages.{at}.content.{number}"
                if known is None or known.account != account:
                    raise self._error(self._wrapped(f"{where}: Invalid `signature` in `thinking` block"))
                if any(name in ask.model for name in BOUND):
                    sent = self._prefix(body, body["messages"][:at])
                    chain = known.prefix[2]
                    if known.prefix[:2] != sent[:2] or sent[2] != chain[len(chain) - len(sent[2]) :]:
                        text = f"{where}: Invalid `signature` in `thinking` block. The block is bound to a different "
                        text += "conversation."
                        raise self._error(self._wrapped(text))
        loop = body["messages"][-2:]
        is_open = len(loop) == 2 and "toolResult" in loop[1]["content"][0]
        if thinks.get("type") == "enabled" and is_open and "reasoningContent" not in loop[0]["content"][0]:
            where = f"messages.{len(body['messages']) - 2}.content.0.type"
            text = f"{where}: Expected `thinking` or `redacted_thinking`, but found `tool_use`."
            raise self._error(self._wrapped(text))

    @staticmethod
    def _wrapped(text: str) -> str:
        return f"The model returned the following errors: {text}"

    @staticmethod
    def _error(message: str) -> Refused:
        return Refused({"message": message, "__type": "ValidationException"})

    @staticmethod
    def _content(answer: Answer) -> list[Json]:
        thought = {"text": answer.shown, "signature": answer.opaque}
        blocks: list[Json] = [{"reasoningContent": {"reasoningText": thought}}]
        if answer.text:
            blocks.append({"text": answer.text})
        for at, call in enumerate(answer.calls):
            use = {"toolUseId": f"tooluse_{answer.serial:06d}{at}", "name": call.name, "input": call.arguments}
            blocks.append({"toolUse": use})
        return blocks

    def whole(self, answer: Answer) -> Json:
        usage = answer.figures.named("inputTokens", "outputTokens")
        message = {"role": "assistant", "content": self._content(answer)}
        stop = "tool_use" if answer.calls else "end_turn"
        head = {"output": {"message": message}, "stopReason": stop, "metrics": {"latencyMs": 1}}
        return {**head, **({"usage": {**usage, "totalTokens": usage["inputTokens"]}} if usage else {})}

    def events(self, answer: Answer) -> list[bytes]:
        whole = self.whole(answer)
        made: list[tuple[str, Json]] = [("messageStart", {"role": "assistant"})]
        for at, block in enumerate(whole["output"]["message"]["content"]):
            place: Json = {"contentBlockIndex": at}
            deltas: list[Json] = []
            if "reasoningContent" in block:
                deltas = [{"reasoningContent": {"text": piece}} for piece in answer.pieces(answer.shown)]
                deltas.append({"reasoningContent": {"signature": answer.opaque}})
            elif "text" in block:
                deltas = [{"text": piece} for piece in answer.pieces(block["text"])]
            else:
                use = block["toolUse"]
                start = {"toolUse": {"toolUseId": use["toolUseId"], "name": use["name"]}}
                made.append(("contentBlockStart", {**place, "start": start}))
                deltas = [{"toolUse": {"input": piece}} for piece in answer.pieces(json.dumps(use["input"]))]
            made += [("contentBlockDelta", {**place, "delta": delta}) for delta in deltas]
            made.append(("contentBlockStop", place))
        made.append(("messageStop", {"stopReason": whole["stopReason"]}))
        made.append(
            ("metadata", {"metrics": {"latencyMs": 1}, **({"usage": whole["usage"]} if "usage" in whole else {})})
        )
        return [frame(kind, payload) for kind, payload in made]
