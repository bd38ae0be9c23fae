"""Mistral, Ollama and Cohere: reasoning in their own places, without opaque values."""

from __future__ import annotations

import json
from typing import Any

from tests.world.chat import Chat, ask_of, text_of
from tests.world.mind import Answer, Ask, Json, Memory, Refused, dumps

_MISTRAL = {"role", "content", "tool_calls", "prefix", "name", "tool_call_id"}


class Mistral(Chat):
    """A list of chunks as content; unknown keys are refused."""

    dialect = "mistral"

    def __init__(self) -> None:
        super().__init__("mistral")

    def check(self, body: Json, ask: Ask, account: str, memory: Memory) -> None:
        for at, message in enumerate(body["messages"]):
            for key in sorted(set(message) - _MISTRAL):
                where = {"type": "extra_forbidden", "loc": ["body", "messages", at, message["role"], key]}
                detail = [{**where, "msg": "Extra inputs are not permitted"}]
                raise Refused({"object": "error", "message": {"detail": detail}, "type": "invalid_request_error"}, 422)
            content = message.get("content")
            is_list = message["role"] == "assistant" and isinstance(content, list) and not message.get("tool_calls")
            if is_list and all(part["type"] == "thinking" for part in content):
                raise Refused({"object": "error", "message": "Assistant message must have content or tool_calls"})

    def _calls(self, answer: Answer) -> list[Json]:
        return [{**call, "id": f"{answer.serial:07d}a{at}"} for at, call in enumerate(super()._calls(answer))]

    def whole(self, answer: Answer) -> Json:
        whole = super().whole(answer)
        message = whole["choices"][0]["message"]
        thought = {"type": "thinking", "thinking": [{"type": "text", "text": answer.thought}], "closed": True}
        text = [{"type": "text", "text": answer.text}] if answer.text else []
        return {**whole, "choices": [{**whole["choices"][0], "message": {**message, "content": [thought, *text]}}]}

    def events(self, answer: Answer) -> list[bytes]:
        first, *rest = super().events(answer)
        head = {"id": f"chatcmpl-{answer.serial}", "object": "chat.completion.chunk", "model": answer.ask.model}
        thoughts: list[bytes] = []
        for piece in answer.pieces(answer.thought):
            chunk = {"type": "thinking", "thinking": [{"type": "text", "text": piece}], "closed": True}
            choice = {"index": 0, "delta": {"content": [chunk]}, "finish_reason": None}
            thoughts.append(b"data: %b\n\n" % dumps({**head, "created": 1, "choices": [choice]}))
        return [first, *thoughts, *rest]


class Ollama:
    """Lines of JSON; calls have no ids."""

    dialect = "ollama"
    streams_as = "application/x-ndjson"

    def ask(self, path: str, body: Json) -> Ask:
        return ask_of(body)._replace(streams=bool(body.get("stream", True)))

    def prefix(self, body: Json) -> Any:
        return None

    def check(self, body: Json, ask: Ask, account: str, memory: Memory) -> None:
        if body.get("think") not in (None, True, False, "low", "medium", "high", "max"):
            raise Refused({"error": f'invalid think value: "{body["think"]}"'})
        for message in body["messages"]:
            if not all(isinstance(message.get(key) or "", str) for key in ("content", "thinking")):
                raise Refused(
                    {"error": "json: cannot unmarshal array into Go struct field ChatRequest.messages.content"}
                )

    def _message(self, answer: Answer) -> Json:
        calls = [{"function": {"name": call.name, "arguments": call.arguments}} for call in answer.calls]
        message: Json = {"role": "assistant", "content": answer.text, "thinking": answer.thought}
        return {**message, **({"tool_calls": calls} if calls else {})}

    def _line(self, answer: Answer, message: Json, done: bool) -> Json:
        head = {"model": answer.ask.model, "created_at": "2026-11-01T00:00:00Z", "message": message, "done": done}
        counts = answer.figures.named("prompt_eval_count", "eval_count")
        return {**head, **({"done_reason": "stop", **counts} if done else {})}

    def whole(self, answer: Answer) -> Json:
        return self._line(answer, self._message(answer), True)

    def events(self, answer: Answer) -> list[bytes]:
        message = self._message(answer)
        base = {"role": "assistant", "content": ""}
        lines = [{**base, "thinking": piece} for piece in answer.pieces(answer.thought)]
        lines += [{**base, "content": piece} for piece in answer.pieces(answer.text)]
        if answer.calls:
            lines.append({**base, "tool_calls": message["tool_calls"]})
        rows = [self._line(answer, line, False) for line in lines] + [self._line(answer, base, True)]
        return [dumps(row) + b"\n" for row in rows]


class Cohere:
    """Content items of thinking, a plan beside calls."""

    dialect = "cohere"
    streams_as = "text/event-stream"

    def ask(self, path: str, body: Json) -> Ask:
        return ask_of(body)

    def prefix(self, body: Json) -> Any:
        return None

    def check(self, body: Json, ask: Ask, account: str, memory: Memory) -> None:
        for at, message in enumerate(body["messages"]):
            for key in ("reasoning_content", "reasoning", "thinking"):
                if key in message:
                    raise Refused({"message": f"invalid request: unknown field messages[{at}].{key}"}, 422)
            if message["role"] == "tool" and not message.get("tool_call_id"):
                raise Refused({"message": f"invalid request: messages[{at}] must have a tool_call_id"})
            if message["role"] == "assistant" and not (text_of(message.get("content")) or message.get("tool_calls")):
                raise Refused({"message": f"invalid request: messages[{at}] has neither content nor tool_calls"})

    def _calls(self, answer: Answer) -> list[Json]:
        return [
            {
                "id": f"{call.name}_{answer.serial:06d}{at}",
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
            }
            for at, call in enumerate(answer.calls)
        ]

    @staticmethod
    def _usage(answer: Answer) -> Json:
        tokens = answer.figures.named("input_tokens", "output_tokens")
        return {"usage": {"billed_units": tokens, "tokens": tokens}} if tokens else {}

    def whole(self, answer: Answer) -> Json:
        content: list[Json] = [{"type": "thinking", "thinking": answer.thought}]
        message: Json = {"role": "assistant", "content": content}
        if answer.calls:
            message |= {"tool_calls": self._calls(answer)}
        if answer.text:
            content.append({"type": "text", "text": answer.text})
        finish = "TOOL_CALL" if answer.calls else "COMPLETE"
        return {"id": f"cohere-{answer.serial}", "finish_reason": finish, "message": message, **self._usage(answer)}

    def events(self, answer: Answer) -> list[bytes]:
        whole = self.whole(answer)
        begun = {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []}
        made: list[Json] = [{"type": "message-start", "id": whole["id"], "delta": {"message": begun}}]
        for at, item in enumerate(whole["message"]["content"]):
            kind = item["type"]
            empty: Json = {"message": {"content": {"type": kind, kind: ""}}}
            made.append({"type": "content-start", "index": at, "delta": empty})
            for piece in answer.pieces(item[kind]):
                made.append({"type": "content-delta", "index": at, "delta": {"message": {"content": {kind: piece}}}})
            made.append({"type": "content-end", "index": at})
        for at, call in enumerate(whole["message"].get("tool_calls", ())):
            empty = {**call, "function": {**call["function"], "arguments": ""}}
            made.append({"type": "tool-call-start", "index": at, "delta": {"message": {"tool_calls": empty}}})
            for piece in answer.pieces(call["function"]["arguments"]):
                delta = {"message": {"tool_calls": {"function": {"arguments": piece}}}}
                made.append({"type": "tool-call-delta", "index": at, "delta": delta})
            made.append({"type": "tool-call-end", "index": at})
        made.append({"type": "message-end", "delta": {"finish_reason": whole["finish_reason"], **self._usage(answer)}})
        return [b"event: %b\ndata: %b\n\n" % (each["type"].encode(), dumps(each)) for each in made]
