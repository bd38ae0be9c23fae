"""Recorded responses as the ledgers of the referee's providers note them: whole bodies and event streams.

Deliberately plain, so that what a ledger learns does not depend on a reader under test. A response that reports an
error says no message.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Mapping, Sequence

from thinkback_referee import Ledger, Mint, ollama
from thinkback_referee import Profile as ChatProfile
from thinkback_referee.bedrock.translate import messages_content
from thinkback_referee.chat.request import read_message, thinking_text
from thinkback_referee.cohere.request import read_message as read_cohere
from thinkback_referee.gemini.ledger import Ledger as GeminiLedger
from thinkback_referee.gemini.ledger import Mint as GeminiMint
from thinkback_referee.interactions.ledger import THOUGHT, Step, Stored
from thinkback_referee.interactions.ledger import Ledger as InteractionsLedger
from thinkback_referee.interactions.ledger import Mint as InteractionsMint
from thinkback_referee.jsons import JsonObject, as_list, as_object, as_objects, as_text
from thinkback_referee.messages import Thoughts
from thinkback_referee.responses.ledger import Kept, Origin, made_of
from thinkback_referee.responses.ledger import Ledger as ResponsesLedger
from thinkback_referee.responses.profiles import profile_for
from thinkback_referee.responses.request import Request as ResponsesRequest
from thinkback_referee.responses.request import prefixes_after

# Not str.splitlines: a line of a stream may hold U+2028, which is no line end here.
_LINE_END = re.compile(r"\r\n|\n|\r")
_NUMBERS = itertools.count(1)


def json_events(stream: str) -> list[Mapping[str, object]]:
    """The JSON objects of server-sent events, ``[DONE]`` left out."""
    data = (line.removeprefix("data:").strip() for line in _LINE_END.split(stream) if line.startswith("data:"))
    return [as_object(json.loads(text)) for text in data if text != "[DONE]"]


_TEXT_FIELDS = ("content", "reasoning_content", "reasoning", "refusal")


def chat_message(response: Mapping[str, object] | str | bytes) -> Mapping[str, object] | None:
    """The assistant message of a completion, a bare message, or a body of server-sent events; None for errors."""
    if isinstance(response, bytes):
        response = response.decode("utf-8")
    if isinstance(response, str):
        return _merged_chat(json_events(response))
    if "error" in response:
        return None
    choices = as_list(response.get("choices"))
    return as_object(as_object(choices[0]).get("message")) if choices else response if "role" in response else None


def _merged_chat(events: Iterable[Mapping[str, object]]) -> JsonObject | None:
    message: JsonObject = {"role": "assistant"}
    calls: dict[object, dict[str, str]] = {}
    for event in events:
        if "error" in event:
            return None
        for choice in as_list(event.get("choices")):
            delta = as_object(as_object(choice).get("delta"))
            _append_chat_text(message, delta)
            for call in as_list(delta.get("tool_calls")):
                _append_chat_call(calls, as_object(call))
    if calls:
        message["tool_calls"] = [_chat_call(call) for call in calls.values()]
    return message


def _append_chat_text(message: JsonObject, delta: Mapping[str, object]) -> None:
    for name in _TEXT_FIELDS:
        piece = delta.get(name)
        if isinstance(piece, str):
            _extend_text(message, name, piece)
        elif isinstance(piece, list):
            # Content chunks: keep them as chunks, for thinking and text alternate.
            earlier = message.get(name)
            chunks = list(as_list(earlier)) or ([{"type": "text", "text": earlier}] if earlier else [])
            message[name] = [*chunks, *piece]


def _extend_text(message: JsonObject, name: str, piece: str) -> None:
    earlier = message.get(name)
    if isinstance(earlier, list):
        message[name] = [*earlier, {"type": "text", "text": piece}] if piece else earlier
    else:
        message[name] = as_text(earlier) + piece


def _append_chat_call(calls: dict[object, dict[str, str]], delta: Mapping[str, object]) -> None:
    call = calls.setdefault(delta.get("index", 0), {"id": "", "name": "", "arguments": ""})
    function = as_object(delta.get("function"))
    call["id"] = call["id"] or as_text(delta.get("id"))
    call["name"] += as_text(function.get("name"))
    call["arguments"] += as_text(function.get("arguments"))


def _chat_call(call: Mapping[str, str]) -> JsonObject:
    function = {"name": call["name"], "arguments": call["arguments"]}
    return {"id": call["id"], "type": "function", "function": function}


def learn_chat(ledger: Ledger, profile: ChatProfile, response: Mapping[str, object] | str | bytes) -> Mint | None:
    """Note what a response minted: a completion object, a bare message, or the text of an event stream.

    Returns the mint, or None for a response that reports an error.
    """
    raw = chat_message(response)
    if raw is None:
        return None
    message = read_message(0, raw)
    reasoning = message.reasoning("reasoning_content") or message.reasoning("reasoning")
    tagged = reasoning is None and "</think>" in message.text
    thought = reasoning or thinking_text(raw.get("content")) or ""
    mint = Mint(profile.host.name, profile.model, thought, message.text, message.calls, tagged)
    ledger.add(mint)
    return mint


# Which field of a block a delta continues, and under which name it comes.
_DELTAS = {
    "thinking_delta": ("thinking", "thinking"),
    "text_delta": ("text", "text"),
    "signature_delta": ("signature", "signature"),
    "input_json_delta": ("input", "partial_json"),
}


def messages_message(response: Mapping[str, object] | str) -> JsonObject | None:
    """The message of a response; None when it reports an error."""
    if isinstance(response, str):
        return messages_message_of_events(json_events(response))
    return dict(response) if response.get("type") == "message" else None


def messages_message_of_events(events: Iterable[Mapping[str, object]]) -> JsonObject | None:
    """The message that a stream adds up to; None when it breaks off or reports an error."""
    message: JsonObject = {}
    blocks: dict[object, JsonObject] = {}
    ended = False
    for event in events:
        match event.get("type"):
            case "message_start":
                message = dict(as_object(event.get("message")))
            case "content_block_start":
                blocks[event.get("index")] = dict(as_object(event.get("content_block")))
            case "content_block_delta":
                _extend_block(blocks[event.get("index")], as_object(event.get("delta")))
            case "message_delta":
                message.update(as_object(event.get("delta")))
            case "message_stop":
                ended = True
    content = [_finished_block(block) for block in blocks.values()]
    return {**message, "content": content} if ended else None


def _extend_block(block: JsonObject, delta: Mapping[str, object]) -> None:
    names = _DELTAS.get(as_text(delta.get("type")))
    if names is not None:
        field, source = names
        block[field] = as_text(block.get(field)) + as_text(delta.get(source))


def _finished_block(block: JsonObject) -> JsonObject:
    source = block.get("input")
    return {**block, "input": json.loads(source or "{}")} if isinstance(source, str) else block


def converse_message(body: Mapping[str, object]) -> JsonObject | None:
    """The message of a whole response; None when it reports an error."""
    message = as_object(as_object(body.get("output")).get("message"))
    return {"content": messages_content(message["content"])} if "content" in message else None


def converse_message_of_events(events: Iterable[tuple[str, Mapping[str, object]]]) -> JsonObject | None:
    """The message that the events of a stream add up to; None when it breaks off."""
    blocks: dict[object, JsonObject] = {}
    ended = False
    for name, payload in events:
        block = blocks.setdefault(payload.get("contentBlockIndex"), {})
        if name == "contentBlockStart":
            block.update(as_object(payload.get("start")))
        elif name == "contentBlockDelta":
            _extend_converse(block, as_object(payload.get("delta")))
        ended = ended or name == "messageStop"
    content = [
        _finished_converse(block) for index, block in blocks.items() if index is not None and block.get("text") != ""
    ]
    return {"content": messages_content(content)} if ended else None


def _extend_converse(block: JsonObject, delta: Mapping[str, object]) -> None:
    for name, value in delta.items():
        if isinstance(value, str):
            block[name] = as_text(block.get(name)) + value
        else:
            inner = dict(as_object(block.get(name)))
            _extend_converse(inner, as_object(value))
            block[name] = inner


def _finished_converse(block: JsonObject) -> JsonObject:
    call, reasoning = as_object(block.get("toolUse")), as_object(block.get("reasoningContent"))
    if call:
        return {"toolUse": {**call, "input": json.loads(as_text(call.get("input")) or "{}")}}
    if "text" in reasoning:
        return {"reasoningContent": {"reasoningText": reasoning}}
    return block


def learn_gemini(ledger: GeminiLedger, host: str, model: str, response: object) -> None:
    """Note the signatures of a recorded response: an object, a list of chunks, or the text of an event stream."""
    chunks = json_events(response) if isinstance(response, str) else as_objects(response) or [as_object(response)]
    candidates = [candidate for chunk in chunks for candidate in as_objects(chunk.get("candidates"))]
    for part in (part for one in candidates for part in as_objects(as_object(one.get("content")).get("parts"))):
        signature = as_text(part.get("thoughtSignature"))
        if signature:
            call = as_text(as_object(part.get("functionCall")).get("name"))
            ledger.add(signature, GeminiMint(host, model, call=call))


def learn_interactions(
    ledger: InteractionsLedger, model: str, response: object, before: Sequence[Step] = (), account: str = ""
) -> None:
    """Note a recorded response, whole or as the text of an event stream, and store it under its id."""
    body = _interaction(response) if isinstance(response, str) else dict(as_object(response))
    steps = tuple(as_objects(body.get("steps")))
    ledger.add(InteractionsMint(model, steps))
    ledger.stored[as_text(body.get("id"))] = Stored((*before, *steps), model, account, body)


def _interaction(stream: str) -> JsonObject:
    """The interaction that a stream tells, with its steps."""
    steps: dict[object, JsonObject] = {}
    whole: JsonObject = {}
    for event in json_events(stream):
        whole |= as_object(event.get("interaction"))
        if event.get("event_type") == "step.start":
            steps[event.get("index")] = dict(as_object(event.get("step")))
        elif event.get("event_type") == "step.delta":
            _extend_step(steps[event.get("index")], as_object(event.get("delta")))
    return {**whole, "steps": list(steps.values())}


def _extend_step(step: JsonObject, delta: Mapping[str, object]) -> None:
    if "signature" in delta:
        step["signature"] = delta["signature"]
    elif "arguments" in delta:
        step["arguments"] = json.loads(as_text(delta["arguments"]))
    elif "text" in delta or "content" in delta:
        name = "summary" if step.get("type") == THOUGHT else "content"
        text = as_text(delta.get("text")) or as_text(as_object(delta.get("content")).get("text"))
        step[name] = [*as_list(step.get(name)), {"type": "text", "text": text}]


def learn_cohere(thoughts: Thoughts, recorded: Mapping[str, object]) -> None:
    """Note the message of a recorded whole response."""
    message = read_cohere(0, as_object(recorded.get("message")))
    thoughts.add(message.keys, message.thinking or "")


def learn_ollama(thoughts: Thoughts, recorded: Mapping[str, object] | str) -> None:
    """Note the message of a recorded response, whole or as lines."""
    if not isinstance(recorded, str):
        ollama.note(thoughts, as_object(recorded.get("message")))
        return
    pieces = [as_object(as_object(json.loads(line)).get("message")) for line in recorded.split("\n") if line]
    texts = {name: "".join(as_text(piece.get(name)) for piece in pieces) for name in ("content", "thinking")}
    calls = [call for piece in pieces for call in as_list(piece.get("tool_calls"))]
    ollama.note(thoughts, {**texts, "tool_calls": calls})


def learn_responses(
    ledger: ResponsesLedger, host: str, account: str, body: Mapping[str, object], response: Mapping[str, object] | str
) -> None:
    """Note what a recorded response to ``body`` minted: a response object, or the text of an event stream."""
    profile = profile_for(host, as_text(body.get("model")))
    if profile is None:
        raise LookupError(f"no row for {host} {body.get('model')}")
    found, copies = copies_of(response)
    request = ResponsesRequest(profile, dict(body), account, ledger)
    stored = request.store and found.get("store") is not False
    origin = Origin(host, profile.reported, account, request.user, stored)
    # Recorded responses may share their ids.
    name = f"{found.get('id')}#{next(_NUMBERS)}"
    ledger.add(made_of(origin, name, copies, prefixes_after(request, copies[0])))
    if stored:
        said = (*(item.raw for item in request.items), *copies[0])
        ledger.keep(as_text(found.get("id")), Kept(origin, said, found))


def copies_of(response: Mapping[str, object] | str) -> tuple[JsonObject, list[list[Mapping[str, object]]]]:
    """The response object and its items, from a body or the text of an event stream; of a stream both copies."""
    if not isinstance(response, str):
        return dict(response), [as_objects(response.get("output"))]
    whole: JsonObject = {}
    done: dict[int, Mapping[str, object]] = {}
    for event in json_events(response):
        if event.get("type") == "response.output_item.done":
            done[int(str(event.get("output_index")))] = as_object(event.get("item"))
        whole = dict(as_object(event.get("response"))) or whole
    items = [done[index] for index in sorted(done)]
    final = as_objects(whole.get("output"))
    return whole, [items, final] if len(final) == len(items) else [items or final]
