"""OpenAI's Responses API: encrypted reasoning items, pairs of items by id, answers that are queued."""

from __future__ import annotations

import json
from typing import Any

from tests.world.chat import text_of
from tests.world.mind import Answer, Ask, Json, Memory, Refused, dumps


class Responses:
    """Stateless requests, as a client with ``store = false`` makes them."""

    dialect = "openai-responses"
    streams_as = "text/event-stream"

    def ask(self, path: str, body: Json) -> Ask:
        items = self._items(body)
        last = max((at for at, each in enumerate(items) if each.get("role") == "user"), default=-1)
        results = sum(each.get("type") == "function_call_output" for each in items[last + 1 :])
        calls = sum(each.get("type") == "function_call" for each in items)
        tools = tuple(each["name"] for each in body.get("tools") or () if each["type"] == "function")
        question = text_of(items[last]["content"]) if last >= 0 else ""
        return Ask(body["model"], question, results, calls, tools, bool(body.get("stream")))

    @staticmethod
    def _items(body: Json) -> list[Json]:
        given = body.get("input") or []
        return [{"role": "user", "content": given}] if isinstance(given, str) else given

    def prefix(self, body: Json) -> Any:
        return None

    def check(self, body: Json, ask: Ask, account: str, memory: Memory) -> None:
        """E1 to E4 of the specification, and responses that nobody knows."""
        items = self._items(body)
        if (named := body.get("previous_response_id")) and f"response {named}" not in memory.items:
            raise self._error(
                f"Previous response with id '{named}' not found.", "previous_response_not_found", "previous_response_id"
            )
        sent = {each.get("id") for each in items if each.get("type") == "reasoning"}
        for at, item in enumerate(items):
            if item.get("type") == "reasoning":
                self._check_reasoning(item, items[at + 1 :], account, memory)
            elif (owner := memory.items.get(str(item.get("id")))) is not None and owner not in sent:
                raise self._error(
                    f"Item '{item['id']}' of type '{item['type']}' was provided without its required 'reasoning' item: "
                    f"'{owner}'."
                )

    def _check_reasoning(self, item: Json, behind: list[Json], account: str, memory: Memory) -> None:
        if "summary" not in item:
            raise self._error("Missing required parameter: 'input[0].summary'.")
        value = item.get("encrypted_content")
        known = memory.opaque.get(str(value))
        if value is None or known is None or known.account != account:
            raise self._error(
                f"The encrypted content for item {item.get('id')} could not be verified. Reason: Encrypted content "
                "could not be decrypted or parsed.",
                "invalid_encrypted_content",
            )
        if item.get("id") and not (
            behind and (behind[0].get("type") == "function_call" or behind[0].get("role") == "assistant")
        ):
            raise self._error(
                f"Item '{item['id']}' of type 'reasoning' was provided without its required following item."
            )

    @staticmethod
    def _error(message: str, code: str | None = None, param: str = "input") -> Refused:
        return Refused({"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}})

    def _output(self, answer: Answer) -> list[Json]:
        summary = [{"type": "summary_text", "text": answer.shown}] if answer.shown else []
        items: list[Json] = [
            {
                "type": "reasoning",
                "id": f"rs_{answer.serial:06d}",
                "summary": summary,
                "encrypted_content": answer.opaque,
            }
        ]
        for at, call in enumerate(answer.calls):
            ids = {"id": f"fc_{answer.serial:06d}{at}", "call_id": f"call_{answer.serial:06d}{at}"}
            arguments = json.dumps(call.arguments)
            items.append(
                {"type": "function_call", **ids, "name": call.name, "arguments": arguments, "status": "completed"}
            )
        if answer.text:
            part = {"type": "output_text", "text": answer.text, "annotations": []}
            message = {"id": f"msg_{answer.serial:06d}", "type": "message", "role": "assistant", "status": "completed"}
            items.append({**message, "content": [part]})
        return items

    def remember(self, answer: Answer, memory: Memory) -> None:
        """Which reasoning the ids of this answer are tied to."""
        first, *rest = self._output(answer)
        memory.items |= {each["id"]: first["id"] for each in rest[:1]}
        memory.items[f"response resp_{answer.serial}"] = True

    def whole(self, answer: Answer) -> Json:
        found = answer.figures.named("input_tokens", "output_tokens", "output_tokens_details.reasoning_tokens")
        usage = found and {"input_tokens_details": {"cached_tokens": 0}, "total_tokens": found["input_tokens"], **found}
        response: Json = {
            "id": f"resp_{answer.serial}",
            "object": "response",
            "created_at": 1,
            "model": answer.ask.model,
            "status": "queued" if answer.mood.queued else "completed",
            "output": [] if answer.mood.queued else self._output(answer),
            "usage": None if answer.mood.queued else usage or None,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
        }
        return response

    def events(self, answer: Answer) -> list[bytes]:
        whole = self.whole(answer)
        made: list[Json] = []
        started = {**whole, "status": "in_progress", "output": [], "usage": None}
        made.append({"type": "response.created", "response": started})
        if answer.mood.queued:
            made.append({"type": "response.queued", "response": whole})
        for at, item in enumerate(whole["output"]):
            made += self._item_events(at, item, answer)
        if not answer.mood.queued:
            made.append({"type": "response.completed", "response": whole})
        for number, event in enumerate(made):
            event["sequence_number"] = number
        return [b"event: %b\ndata: %b\n\n" % (event["type"].encode(), dumps(event)) for event in made]

    @staticmethod
    def _item_events(at: int, item: Json, answer: Answer) -> list[Json]:
        place = {"output_index": at, "item_id": item["id"]}
        inner: list[Json] = []
        begun = dict(item)
        if item["type"] == "reasoning":
            begun = {**item, "summary": [], "encrypted_content": item["encrypted_content"][:8]}
            for number, part in enumerate(item["summary"]):
                there = {**place, "summary_index": number}
                empty = {"type": "summary_text", "text": ""}
                inner.append({"type": "response.reasoning_summary_part.added", **there, "part": empty})
                for piece in answer.pieces(part["text"]):
                    inner.append({"type": "response.reasoning_summary_text.delta", **there, "delta": piece})
                inner.append({"type": "response.reasoning_summary_text.done", **there, "text": part["text"]})
                inner.append({"type": "response.reasoning_summary_part.done", **there, "part": part})
        elif item["type"] == "function_call":
            begun = {**item, "arguments": "", "status": "in_progress"}
            for piece in answer.pieces(item["arguments"]):
                inner.append({"type": "response.function_call_arguments.delta", **place, "delta": piece})
            done = {"arguments": item["arguments"], "name": item["name"]}
            inner.append({"type": "response.function_call_arguments.done", **place, **done})
        else:
            begun = {**item, "content": [], "status": "in_progress"}
            there = {**place, "content_index": 0}
            part = item["content"][0]
            inner.append({"type": "response.content_part.added", **there, "part": {**part, "text": ""}})
            for piece in answer.pieces(part["text"]):
                inner.append({"type": "response.output_text.delta", **there, "delta": piece, "logprobs": []})
            inner.append({"type": "response.output_text.done", **there, "text": part["text"], "logprobs": []})
            inner.append({"type": "response.content_part.done", **there, "part": part})
        first = {"type": "response.output_item.added", "output_index": at, "item": begun}
        return [first, *inner, {"type": "response.output_item.done", "output_index": at, "item": item}]
