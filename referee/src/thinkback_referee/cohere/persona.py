"""The persona of Cohere's chat API: readable thinking in content items, nothing opaque, unknown fields refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..credentials import accepted, account_of, bearer
from ..jsons import JsonObject, as_object, as_text, compact, strict_loads
from ..persona import Asked, Rendered, View
from ..prompts import Prompts
from ..script import Step
from ..streams import derived, sse
from ..thoughts import Thoughts
from ..transport import Incoming
from ..verdict import Verdict
from . import profiles as say
from .judge import judge, refuse
from .profiles import PROFILES
from .render import DONE, events, prepare, response
from .request import Message, Request
from .view import view_of, words_of

_CHAT = ("/v2/chat", "/chat")


class Cohere:
    """Command models behind ``/v2/chat``."""

    def __init__(self) -> None:
        self.thoughts = Thoughts()
        self._prompts = Prompts()

    @property
    def hosts(self) -> Sequence[str]:
        """One name."""
        return ("cohere",)

    def base_path(self, host: str) -> str:
        """The version."""
        return "/v2"

    def models(self, host: str) -> Sequence[str]:
        """All rows."""
        return tuple(PROFILES)

    def read(self, host: str, path: str, incoming: Incoming) -> Asked | Verdict | None:
        """A request for a chat response, or for the list of models."""
        listed = incoming.method == "GET" and path == "/v1/models"
        if not listed and (incoming.method != "POST" or path not in _CHAT):
            return None
        key = bearer(incoming.headers)
        if not accepted(key):
            return refuse(say.UNAUTHORIZED if key else say.NO_KEY, "unauthorized", status=401)
        if listed:
            return Verdict(200, {"models": [{"name": model, "endpoints": ["chat"]} for model in PROFILES]})
        return _asked(host, path, incoming)

    def judge(self, asked: Asked) -> Verdict:
        """The verdict of the pure judge, or the 404 of a model without a row."""
        profile = PROFILES.get(asked.model)
        if profile is None:
            return refuse(say.UNKNOWN_MODEL.format(model=asked.model), f"unknown model {asked.model}", status=404)
        return judge(Request(profile, asked.body), self.thoughts)

    def view(self, asked: Asked) -> View:
        """The messages, with the thinking of the open turn."""
        return view_of(_request(asked))

    def render(self, asked: Asked, step: Step, digest: str) -> Rendered:
        """The response and the stream that say the same."""
        request = _request(asked)
        words = words_of(request)
        hit = self._prompts.hit(asked.host, asked.model, words)
        answer = prepare(step, derived(digest, account_of(bearer(asked.headers))), len(words), hit)
        self.thoughts.add(Message(0, "assistant", answer.message).keys, step.reasoning)
        return Rendered(compact(response(answer)).encode(), events(answer), DONE)

    def learn(self, recorded: Mapping[str, object]) -> None:
        """Note the message of a recorded whole response."""
        message = Message(0, "assistant", as_object(recorded.get("message")))
        self.thoughts.add(message.keys, message.thinking or "")

    def reject(self, asked: Asked) -> Verdict:
        """The refusal of the last assistant message's thinking."""
        index = max((message.index for message in _request(asked).assistants), default=0)
        return refuse(say.CHANGED.format(index=index), "rejected as scripted")

    def broken(self, message: str, code: str) -> bytes:
        """A message-end that names an error."""
        delta: JsonObject = {"finish_reason": "ERROR", "error": message}
        return sse({"type": "message-end", "delta": delta}, "message-end")

    def reset(self) -> None:
        """Forget thoughts and prompts."""
        self.thoughts, self._prompts = Thoughts(), Prompts()


def _asked(host: str, path: str, incoming: Incoming) -> Asked | Verdict:
    try:
        body = strict_loads(incoming.body)
    except (ValueError, RecursionError) as error:
        return refuse(say.BAD_JSON.format(error=error), "invalid JSON")
    found = dict(as_object(body))
    model = as_text(found.get("model"))
    if not model:
        return refuse(say.NO_MODEL, "no model")
    return Asked(host, path, incoming.headers, found, model, found.get("stream") is True)


def _request(asked: Asked) -> Request:
    return Request(PROFILES[asked.model], asked.body)
