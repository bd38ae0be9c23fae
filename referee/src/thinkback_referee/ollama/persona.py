"""The persona of an Ollama server: no keys, lines of JSON, thoughts as plain text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from ..jsons import JsonObject, as_list, as_object, as_text, compact, strict_loads
from ..persona import Asked, Rendered, View
from ..script import Step
from ..thoughts import Thoughts
from ..transport import Incoming
from ..verdict import Verdict
from . import profiles as say
from .judge import judge, refuse
from .profiles import PROFILES
from .render import lines, prepare, response
from .request import Message, Request
from .view import view_of, words_of

_CHAT = "/api/chat"
_TAGS = "/api/tags"


class Ollama:
    """Models behind ``/api/chat``."""

    def __init__(self) -> None:
        self.thoughts = Thoughts()

    @property
    def hosts(self) -> Sequence[str]:
        """One name."""
        return ("ollama",)

    def base_path(self, host: str) -> str:
        """What all of its own paths begin with."""
        return "/api"

    def models(self, host: str) -> Sequence[str]:
        """All rows."""
        return tuple(PROFILES)

    def read(self, host: str, path: str, incoming: Incoming) -> Asked | Verdict | None:
        """A request for a chat response, or for the list of models; keys are not looked at."""
        if incoming.method == "GET" and path == _TAGS:
            return Verdict(200, {"models": [{"name": model, "model": model} for model in PROFILES]})
        return _asked(host, incoming) if incoming.method == "POST" and path == _CHAT else None

    def judge(self, asked: Asked) -> Verdict:
        """The verdict of the pure judge, or the 404 of a model without a row."""
        profile = PROFILES.get(asked.model)
        if profile is None:
            return refuse(say.UNKNOWN_MODEL.format(model=asked.model), f"unknown model {asked.model}", status=404)
        return judge(Request(profile, asked.body), self.thoughts)

    def view(self, asked: Asked) -> View:
        """The messages, with the thoughts of the open turn."""
        return view_of(_request(asked))

    def render(self, asked: Asked, step: Step, digest: str) -> Rendered:
        """The response and the lines that say the same."""
        request = _request(asked)
        answer = prepare(request, step, digest, len(words_of(request)))
        self._note(answer.message)
        return Rendered(
            compact(response(answer)).encode(),
            lines(answer),
            content_type="application/x-ndjson",
            whole_type="application/json; charset=utf-8",
        )

    def learn(self, recorded: Mapping[str, object] | str) -> None:
        """Note the message of a recorded response, whole or as lines."""
        if not isinstance(recorded, str):
            self._note(as_object(recorded.get("message")))
            return
        pieces = [as_object(as_object(json.loads(line)).get("message")) for line in recorded.split("\n") if line]
        self._note(
            {
                **{name: "".join(as_text(piece.get(name)) for piece in pieces) for name in ("content", "thinking")},
                "tool_calls": [call for piece in pieces for call in as_list(piece.get("tool_calls"))],
            }
        )

    def reject(self, asked: Asked) -> Verdict:
        """The refusal of the last assistant message's thinking."""
        index = max((message.index for message in _request(asked).assistants), default=0)
        return refuse(say.CHANGED.format(index=index), "rejected as scripted")

    def broken(self, message: str, code: str) -> bytes:
        """A line with an error."""
        return compact({"error": message}).encode() + b"\n"

    def reset(self) -> None:
        """Forget all thoughts."""
        self.thoughts = Thoughts()

    def _note(self, raw: Mapping[str, object]) -> None:
        message = Message(0, "assistant", raw)
        if "</think>" not in message.text:
            # A thought that leaked into the content may come back as content, as thinking, or not at all.
            self.thoughts.add(message.keys, message.thinking)


def _asked(host: str, incoming: Incoming) -> Asked | Verdict:
    try:
        body = strict_loads(incoming.body)
    except (ValueError, RecursionError) as error:
        return refuse(str(error), "invalid JSON")
    found: JsonObject = dict(as_object(body))
    model = as_text(found.get("model"))
    if not model:
        return refuse(say.NO_MODEL, "no model")
    return Asked(host, _CHAT, incoming.headers, found, model, found.get("stream") is not False)


def _request(asked: Asked) -> Request:
    return Request(PROFILES[asked.model], asked.body)
