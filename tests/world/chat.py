"""Chat completions as Kimi, DeepSeek, OpenAI and a server that knows nothing (vLLM) speak them."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.world.mind import Answer, Ask, Json, Memory, Refused, dumps

_PLAIN = {"role", "content", "tool_calls", "name", "refusal", "audio", "function_call"}


def ask_of(body: Json) -> Ask:
    """What is asked, as all chat completions say it."""
    messages = body["messages"]
    last = max((at for at, each in enumerate(messages) if each["role"] == "user"), default=-1)
    tools = tuple(each["function"]["name"] for each in body.get("tools") or () if "function" in each)
    results = sum(each["role"] == "tool" for each in messages[last + 1 :])
    calls = sum(len(each.get("tool_calls") or ()) for each in messages)
    question = text_of(messages[last].get("content")) if last >= 0 else ""
    return Ask(body["model"], question, results, calls, tools, bool(body.get("stream")))


def text_of(content: Any) -> str:
    """The words of a content, whatever its form."""
    if isinstance(content, str):
        return content
    return "".join(part.get("text") or "" for part in content or ())


class Chat:
    """``flavour`` says whose: what its messages may have, what it demands back, which ids its calls have."""

    dialect = "openai-chat"
    streams_as = "text/event-stream"

    def __init__(self, flavour: str) -> None:
        self.flavour = flavour
        self.field = {"kimi": "reasoning_content", "deepseek": "reasoning_content", "vllm": "reasoning"}.get(flavour)

    def ask(self, path: str, body: Json) -> Ask:
        return ask_of(body)

    def prefix(self, body: Json) -> Any:
        return None

    def check(self, body: Json, ask: Ask, account: str, memory: Memory) -> None:
        """Refuse what the provider refuses about reasoning."""
        for at, message in enumerate(body["messages"]):
            if message["role"] != "assistant":
                continue
            if self.flavour == "openai" and (odd := set(message) - _PLAIN):
                raise self._error(f"Unknown parameter: 'messages[{at}].{min(odd)}'.")
            thought = message.get("reasoning_content")
            if self.flavour == "kimi" and message.get("tool_calls") and not thought:
                raise self._error(
                    f"thinking is enabled but reasoning_content is missing in assistant tool call message at index {at}"
                )
            if self.flavour == "deepseek" and not thought and self._is_demanded(body):
                raise self._error("The `reasoning_content` in the thinking mode must be passed back to the API.")
        is_newer = re.match(r"gpt-(5\.[4-9]|[6-9])", ask.model) is not None
        if self.flavour == "openai" and is_newer and ask.tools and body.get("reasoning_effort") != "none":
            raise self._error(
                f"Function tools with reasoning_effort are not supported for {ask.model} in /v1/chat/completions. "
                "To use function tools, use /v1/responses or set reasoning_effort to 'none'."
            )

    @staticmethod
    def _is_demanded(body: Json) -> bool:
        is_off = (body.get("thinking") or {}).get("type") == "disabled"
        return bool(body.get("tools")) and not is_off

    @staticmethod
    def _error(message: str) -> Refused:
        return Refused({"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}})

    def _calls(self, answer: Answer) -> list[Json]:
        made: list[Json] = []
        for at, call in enumerate(answer.calls):
            id = {
                "kimi": f"functions.{call.name}:{answer.ask.calls + at}",
                "deepseek": f"call_{answer.ask.calls + at}",
            }.get(self.flavour, f"call_{answer.serial:06d}{at}")
            function = {"name": call.name, "arguments": json.dumps(call.arguments)}
            made.append({"index": at, "id": id, "type": "function", "function": function})
        return made

    def _usage(self, answer: Answer) -> Json:
        found = answer.figures.named("prompt_tokens", "completion_tokens", "completion_tokens_details.reasoning_tokens")
        return {"usage": found} if found else {}

    def whole(self, answer: Answer) -> Json:
        """The response to a request without ``stream``."""
        message: Json = {"role": "assistant", "content": answer.text}
        if self.field:
            message[self.field] = answer.thought
        if answer.calls:
            message["tool_calls"] = self._calls(answer)
        choice = {"index": 0, "finish_reason": "tool_calls" if answer.calls else "stop", "message": message}
        head = {"id": f"chatcmpl-{answer.serial}", "object": "chat.completion", "created": 1, "model": answer.ask.model}
        return {**head, "choices": [choice], **self._usage(answer)}

    def events(self, answer: Answer) -> list[bytes]:
        """The stream, an event each."""
        deltas: list[Json] = [{"role": "assistant", "content": ""}]
        if self.field:
            deltas += [{self.field: piece, "content": None} for piece in answer.pieces(answer.thought)]
        deltas += [{"content": piece} for piece in answer.pieces(answer.text)]
        for call in self._calls(answer):
            first, second = call["function"]["arguments"][:3], call["function"]["arguments"][3:]
            deltas.append({"tool_calls": [{**call, "function": {**call["function"], "arguments": first}}]})
            deltas.append({"tool_calls": [{"index": call["index"], "function": {"arguments": second}}]})
        head = {"id": f"chatcmpl-{answer.serial}", "object": "chat.completion.chunk", "created": 1}
        chunks: list[Json] = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
        finish = "tool_calls" if answer.calls else "stop"
        chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}], **self._usage(answer)})
        events = [b"data: %b\n\n" % dumps({**head, "model": answer.ask.model, **chunk}) for chunk in chunks]
        return [*events, b"data: [DONE]\n\n"]
