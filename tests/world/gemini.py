"""Google's generateContent and Interactions: signatures on calls and thoughts; calls without ids."""

from __future__ import annotations

import json
from typing import Any

from tests.world.mind import Answer, Ask, Json, Memory, Refused, dumps

DUMMIES = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")


def _signature(part: Json) -> str:
    return str(part.get("thoughtSignature") or part.get("thought_signature") or "")


class Gemini:
    """Gemini 3: the first call of each step of the current turn must be signed, by Google."""

    dialect = "gemini"
    streams_as = "text/event-stream"

    def ask(self, path: str, body: Json) -> Ask:
        contents = body["contents"]
        last = self._question(contents)
        behind = [part for each in contents[last + 1 :] for part in each["parts"]]
        every = [part for each in contents for part in each["parts"]]
        tools = tuple(
            each["name"] for tool in body.get("tools") or () for each in tool.get("functionDeclarations") or ()
        )
        question = "".join(part.get("text") or "" for part in contents[last]["parts"]) if last >= 0 else ""
        model = path.rpartition("/models/")[2].partition(":")[0]
        results, calls = (
            sum(key in part for part in parts)
            for key, parts in (
                ("functionResponse", behind),
                ("functionCall", every),
            )
        )
        return Ask(model, question, results, calls, tools, ":streamGenerateContent" in path)

    @staticmethod
    def _question(contents: list[Json]) -> int:
        asked = [
            at
            for at, each in enumerate(contents)
            if each.get("role", "user") == "user" and not all("functionResponse" in part for part in each["parts"])
        ]
        return asked[-1] if asked else -1

    def prefix(self, body: Json) -> Any:
        return None

    def check(self, body: Json, ask: Ask, account: str, memory: Memory) -> None:
        """Missing, corrupted and repeated signatures."""
        contents = body["contents"]
        last = self._question(contents)
        seen: set[str] = set()
        for at, content in enumerate(contents):
            if content.get("role") != "model":
                continue
            for part in content["parts"]:
                value = _signature(part)
                if value and value not in DUMMIES and value not in memory.opaque:
                    raise self._error("Corrupted thought signature.")
                if value in seen and value not in DUMMIES:
                    raise self._error("Thought signature is not valid: it was sent twice.")
                seen |= {value} - {""}
            calls = [part for part in content["parts"] if "functionCall" in part]
            if at > last and calls and not _signature(calls[0]):
                raise self._error(
                    "Function call is missing a thought_signature in functionCall parts. This is required for tools to "
                    "work correctly, and missing thought_signature may lead to degraded model performance. Additional "
                    f"data, function call `default_api:{calls[0]['functionCall']['name']}` , position {at}."
                )

    @staticmethod
    def _error(message: str) -> Refused:
        return Refused({"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}})

    def _parts(self, answer: Answer) -> list[Json]:
        parts: list[Json] = [{"text": answer.shown, "thought": True}] if answer.shown else []
        for at, call in enumerate(answer.calls):
            signed = {} if at else {"thoughtSignature": answer.opaque}
            parts.append({"functionCall": {"name": call.name, "args": call.arguments}, **signed})
        if answer.text:
            parts += [{"text": answer.text}, {"text": "", "thoughtSignature": answer.opaque}]
        return parts

    def _usage(self, answer: Answer) -> Json:
        found = answer.beside.named("promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount")
        return {"usageMetadata": found} if found else {}

    def _wrapped(self, answer: Answer, parts: list[Json], finish: Json) -> Json:
        candidate = {"index": 0, "content": {"role": "model", "parts": parts}, **finish}
        head = {"modelVersion": answer.ask.model, "responseId": f"gemini-{answer.serial}"}
        return {"candidates": [candidate], **self._usage(answer), **head}

    def whole(self, answer: Answer) -> Json:
        return self._wrapped(answer, self._parts(answer), {"finishReason": "STOP"})

    def events(self, answer: Answer) -> list[bytes]:
        parts: list[Json] = []
        for part in self._parts(answer):
            if part.get("text"):
                parts += [{**part, "text": piece} for piece in answer.pieces(part["text"])]
            else:
                parts.append(part)
        last = len(parts) - 1
        rows = [
            self._wrapped(answer, [part], {"finishReason": "STOP"} if at == last else {})
            for at, part in enumerate(parts)
        ]
        return [b"data: %b\n\n" % dumps(row) for row in rows]


class Interactions:
    """The Interactions API without a store: every step of an open loop comes back, thoughts as they were."""

    dialect = "gemini-interactions"
    streams_as = "text/event-stream"

    def ask(self, path: str, body: Json) -> Ask:
        steps = self._steps(body)
        asked = [at for at, each in enumerate(steps) if each["type"] == "user_input"]
        last = asked[-1] if asked else -1
        results = sum(each["type"] == "function_result" for each in steps[last + 1 :])
        calls = sum(each["type"] == "function_call" for each in steps)
        tools = tuple(each["name"] for each in body.get("tools") or () if each["type"] == "function")
        content = steps[last]["content"] if asked else ""
        question = content if isinstance(content, str) else "".join(part.get("text") or "" for part in content)
        return Ask(body["model"], question, results, calls, tools, bool(body.get("stream")))

    @staticmethod
    def _steps(body: Json) -> list[Json]:
        given = body["input"]
        if isinstance(given, str):
            return [{"type": "user_input", "content": given}]
        if all(each.get("type") == "text" for each in given):
            return [{"type": "user_input", "content": given}]
        return list(given)

    def prefix(self, body: Json) -> Any:
        return None

    def check(self, body: Json, ask: Ask, account: str, memory: Memory) -> None:
        """Signatures that Google did not make, and calls of this turn without the thought before them."""
        steps = self._steps(body)
        asked = max((at for at, each in enumerate(steps) if each["type"] == "user_input"), default=-1)
        for at, step in enumerate(steps):
            if step["type"] == "thought" and step.get("signature") not in (*DUMMIES, *memory.opaque):
                raise Gemini._error("Corrupted thought signature.")
            if step["type"] == "function_call" and at > asked:
                before = steps[at - 1]["type"] if at else ""
                if before not in ("thought", "function_call"):
                    raise Gemini._error(f"Step {at}: function_call without the thought step that led to it.")

    def _steps_of(self, answer: Answer) -> list[Json]:
        summary = {"summary": [{"type": "text", "text": answer.shown}]} if answer.shown else {}
        steps: list[Json] = [{"type": "thought", "signature": answer.opaque, **summary}]
        for at, call in enumerate(answer.calls):
            id = f"fc{answer.serial:06d}{at}"
            steps.append({"type": "function_call", "id": id, "name": call.name, "arguments": call.arguments})
        if answer.text:
            steps.append({"type": "model_output", "content": [{"type": "text", "text": answer.text}]})
        return steps

    def whole(self, answer: Answer) -> Json:
        usage = answer.beside.named("total_input_tokens", "total_output_tokens", "total_thought_tokens")
        status = "queued" if answer.mood.queued else "requires_action" if answer.calls else "completed"
        head = {"id": f"int_{answer.serial}", "object": "interaction", "model": answer.ask.model, "status": status}
        steps = [] if answer.mood.queued else self._steps_of(answer)
        return {**head, "created": "2026-11-01T00:00:00Z", "steps": steps, **({"usage": usage} if usage else {})}

    def events(self, answer: Answer) -> list[bytes]:
        whole = self.whole(answer)
        begun = {**whole, "status": "queued" if answer.mood.queued else "in_progress", "steps": []}
        made: list[Json] = [{"event_type": "interaction.created", "interaction": begun}]
        for at, step in enumerate(whole["steps"]):
            made.append({"event_type": "step.start", "index": at, "step": self._empty(step)})
            made += [{"event_type": "step.delta", "index": at, "delta": delta} for delta in self._deltas(step, answer)]
            made.append({"event_type": "step.stop", "index": at})
        if not answer.mood.queued:
            made.append({"event_type": "interaction.completed", "interaction": {**whole, "steps": []}})
        events = [b"event: %b\ndata: %b\n\n" % (each["event_type"].encode(), dumps(each)) for each in made]
        return [*events, b"event: done\ndata: [DONE]\n\n"]

    @staticmethod
    def _empty(step: Json) -> Json:
        match step["type"]:
            case "thought":
                return {"type": "thought"}
            case "function_call":
                return {**step, "arguments": {}}
            case _:
                return {"type": "model_output"}

    @staticmethod
    def _deltas(step: Json, answer: Answer) -> list[Json]:
        match step["type"]:
            case "thought":
                parts = [text for each in step.get("summary", ()) for text in answer.pieces(each["text"])]
                thoughts = [{"type": "thought_summary", "content": {"type": "text", "text": text}} for text in parts]
                return [*thoughts, {"type": "thought_signature", "signature": step["signature"]}]
            case "function_call":
                text = json.dumps(step["arguments"])
                return [{"type": "arguments_delta", "arguments": piece} for piece in answer.pieces(text)]
            case _:
                return [{"type": "text", "text": piece} for piece in answer.pieces(step["content"][0]["text"])]
