"""Anthropic's Messages API: signed blocks, bound to the prefix they were made behind by the newest models."""

from __future__ import annotations

import json
from typing import Any

from tests.world.chat import text_of
from tests.world.mind import Answer, Ask, Json, Memory, Refused, dumps

BOUND = ("fable-5-1", "fable-5-2", "mythos-5-1", "mythos-5-2", "opus-5-5", "sonnet-5-5", "haiku-5-5")
THOUGHTS = ("thinking", "redacted_thinking")


def unmarked(value: Any) -> Any:
    """``value`` without marks of caching."""
    if isinstance(value, dict):
        return {key: unmarked(inner) for key, inner in value.items() if key != "cache_control"}
    return [unmarked(inner) for inner in value] if isinstance(value, list) else value


def _blocks(content: Any) -> list[Json]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _opaque(block: Json) -> str:
    return str(block.get("signature") or block.get("data"))


def visible(messages: list[Json]) -> list[Any]:
    """Messages without reasoning and marks."""
    return [
        (each["role"], [unmarked(block) for block in _blocks(each["content"]) if block["type"] not in THOUGHTS])
        for each in messages
    ]


class Anthropic:
    """Refuses blocks that it did not sign, that were altered, or that stand behind another prefix."""

    dialect = "anthropic"
    streams_as = "text/event-stream"

    def ask(self, path: str, body: Json) -> Ask:
        messages = body["messages"]
        people = [
            at
            for at, each in enumerate(messages)
            if each["role"] == "user" and any(block["type"] == "text" for block in _blocks(each["content"]))
        ]
        last = people[-1] if people else -1
        behind = [block for each in messages[last + 1 :] for block in _blocks(each["content"])]
        calls = sum(block["type"] == "tool_use" for each in messages for block in _blocks(each["content"]))
        results = sum(block["type"] == "tool_result" for block in behind)
        tools = tuple(each["name"] for each in body.get("tools") or () if "input_schema" in each)
        question = text_of([b for b in _blocks(messages[last]["content"]) if b["type"] == "text"]) if people else ""
        return Ask(body["model"], question, results, calls, tools, bool(body.get("stream")))

    def prefix(self, body: Json) -> Any:
        """Everything that a block of the next answer stands behind: system, tools, words, and the chain of thoughts."""
        return self._prefix(body, body["messages"])

    @staticmethod
    def _prefix(body: Json, messages: list[Json]) -> Any:
        chain = [_opaque(b) for each in messages for b in _blocks(each["content"]) if b["type"] in THOUGHTS]
        system = unmarked(_blocks(body.get("system") or ""))
        return json.dumps([system, unmarked(body.get("tools") or [])]), json.dumps(visible(messages)), chain

    def check(self, body: Json, ask: Ask, account: str, memory: Memory) -> list[Json]:
        """Refuse what the provider refuses; with ``drop_block``, leave the block out and report it."""
        report: list[Json] = []
        thinking = body.get("thinking") or {}
        drops = (thinking.get("block_binding") or {}).get("prefix_mismatch_behavior") == "drop_block"
        messages = body["messages"]
        for at, message in enumerate(messages):
            blocks = _blocks(message["content"])
            if message["role"] == "assistant" and blocks and blocks[-1]["type"] in THOUGHTS:
                raise self._error(f"messages.{at}: The final block in an assistant message cannot be `thinking`.")
            for number, block in enumerate(blocks):
                if block["type"] not in THOUGHTS:
                    continue
                where = f"messages.{at}.content.{number}"
                known = memory.opaque.get(_opaque(block))
                if known is None or "VEhO" not in _opaque(block):
                    raise self._error(f"{where}: Invalid `signature` in `thinking` block")
                if not self._is_bound(ask.model):
                    continue
                behind = self._prefix(body, messages[:at])
                is_whole = known.prefix[:2] == behind[:2] and self._ends_with(known.prefix[2], behind[2])
                if is_whole and known.account == account:
                    continue
                reason = "prefix_binding_mismatch" if known.account == account else "organization_binding_mismatch"
                report.append({"type": "thinking_dropped", "path": where, "reason": reason})
                if not drops:
                    raise self._error(
                        f"{where}: Invalid `signature` in `thinking` block. The block is bound to a different "
                        "conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "
                        '"drop_block".'
                    )
        self._check_open_loop(messages, thinking)
        return report

    def _check_open_loop(self, messages: list[Json], thinking: Json) -> None:
        """A loop whose last answer lost its thinking is refused in manual mode."""
        if thinking.get("type") != "enabled" or len(messages) < 2 or messages[-2]["role"] != "assistant":
            return
        if any(block["type"] == "tool_result" for block in _blocks(messages[-1]["content"])):
            first = _blocks(messages[-2]["content"])[0]["type"]
            if first not in THOUGHTS:
                raise self._error(
                    f"messages.{len(messages) - 2}.content.0.type: Expected `thinking` or `redacted_thinking`, but "
                    f"found `{first}`. When `thinking` is enabled, a final `assistant` message must start with a "
                    "thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks)."
                )

    @staticmethod
    def _ends_with(minted: list[str], sent: list[str]) -> bool:
        """Whether ``sent`` is the chain it was minted behind, with thoughts removed from the start alone."""
        return sent == minted[len(minted) - len(sent) :]

    @staticmethod
    def _is_bound(model: str) -> bool:
        return any(name in model for name in BOUND)

    @staticmethod
    def _error(message: str) -> Refused:
        return Refused({"type": "error", "error": {"type": "invalid_request_error", "message": message}})

    @staticmethod
    def _content(answer: Answer) -> list[Json]:
        blocks: list[Json] = [{"type": "thinking", "thinking": answer.shown, "signature": answer.opaque}]
        if answer.text:
            blocks.append({"type": "text", "text": answer.text})
        for at, call in enumerate(answer.calls):
            id = f"toolu_{answer.serial:06d}{at}"
            blocks.append({"type": "tool_use", "id": id, "name": call.name, "input": call.arguments})
        return blocks

    def whole(self, answer: Answer) -> Json:
        usage = answer.figures.named("input_tokens", "output_tokens", "output_tokens_details.thinking_tokens")
        head = {"id": f"msg_{answer.serial}", "type": "message", "role": "assistant", "model": answer.ask.model}
        stop = {"stop_reason": "tool_use" if answer.calls else "end_turn", "stop_sequence": None}
        report = {"input_transformations": answer.report} if answer.report else {}
        return {**head, "content": self._content(answer), **stop, **({"usage": usage} if usage else {}), **report}

    def events(self, answer: Answer) -> list[bytes]:
        whole = self.whole(answer)
        usage = whole.get("usage", {})
        opening = {
            **whole,
            "content": [],
            "stop_reason": None,
            **({"usage": {**usage, "output_tokens": 1}} if usage else {}),
        }
        made: list[Json] = [{"type": "message_start", "message": opening}, {"type": "ping"}]
        for at, block in enumerate(whole["content"]):
            deltas: list[Json] = []
            empty = dict(block)
            match block["type"]:
                case "thinking":
                    empty |= {"thinking": "", "signature": ""}
                    deltas += [{"type": "thinking_delta", "thinking": p} for p in answer.pieces(block["thinking"])]
                    deltas.append({"type": "signature_delta", "signature": block["signature"]})
                case "text":
                    empty |= {"text": ""}
                    deltas += [{"type": "text_delta", "text": piece} for piece in answer.pieces(block["text"])]
                case _:
                    empty |= {"input": {}}
                    text = json.dumps(block["input"])
                    deltas += [{"type": "input_json_delta", "partial_json": piece} for piece in answer.pieces(text)]
            made.append({"type": "content_block_start", "index": at, "content_block": empty})
            made += [{"type": "content_block_delta", "index": at, "delta": delta} for delta in deltas]
            made.append({"type": "content_block_stop", "index": at})
        last = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
        made.append({"type": "message_delta", "delta": last, **({"usage": usage} if usage else {})})
        made.append({"type": "message_stop"})
        return [b"event: %b\ndata: %b\n\n" % (event["type"].encode(), dumps(event)) for event in made]
