"""A program's own model client in the place of HTTP: anything with a ``chat`` method.

``chat(**request)`` gets the request body of chat completions as keyword arguments and returns text, or a response in
that form as a mapping (or an object with ``model_dump``). A client may also have ``extract_reasoning(response)``,
which returns nothing, the text of the reasoning, or (text, format); without it the response's own fields are read.
A format is one of ``THOUGHT_FORMATS``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from thinkback.drive.http import HttpResponse, Timeouts
from thinkback.errors import NetworkError, ThinkbackError
from thinkback.log.drafting import known_format
from thinkback.model import canonical

ADDRESS = "http://client.invalid"  # a name that no host can have
# Where reasoning of a format stands in a message; any other goes the most common way.
_FIELDS = {"parsed": "reasoning", "reasoning": "reasoning"}
_TAGGED = frozenset({"think_tags", "raw"})


class ClientTransport:
    """Calls ``client`` instead of sending. What the client raises is the network's failure, as it says it itself."""

    def __init__(self, client: Any) -> None:
        if not callable(getattr(client, "chat", None)):
            raise TypeError(f"a client needs a method chat(**request), and {type(client).__name__} has none")
        self._client = client

    @contextmanager
    def post(self, url: str, headers: dict[str, str], body: bytes, timeouts: Timeouts) -> Iterator[HttpResponse]:
        """One call; the response comes whole."""
        request = canonical.decode(body)
        try:
            answer = self._client.chat(**request)
            reasoning = self._extracted(answer)
        except ThinkbackError:
            raise
        except Exception as error:  # the client is foreign code: whatever it raises, the request has failed
            raise NetworkError(
                f"the client failed: {type(error).__name__}: {error}",
                details={"phase": "network", "permanent": True},
                next_actions=("see what the client says",),
            ) from error
        said = canonical.encode(_with_reasoning(_response(answer), reasoning))
        yield HttpResponse(200, {"content-type": "application/json"}, iter([said]))

    def close(self) -> None:
        """Nothing to close: the client is the program's."""

    def _extracted(self, answer: Any) -> tuple[str, str]:
        extract = getattr(self._client, "extract_reasoning", None)
        found = extract(answer) if callable(extract) else None
        if not found:
            return "", ""
        if isinstance(found, str):
            return found, "parsed"
        text, format = found
        return (text or ""), known_format(format or "parsed")


def _response(answer: Any) -> dict[str, Any]:
    """The answer in the form of chat completions. Raises ``NetworkError`` for one that has another."""
    if isinstance(answer, str):
        return {"choices": [{"index": 0, "message": {"role": "assistant", "content": answer}, "finish_reason": "stop"}]}
    plain = answer.model_dump(exclude_none=True) if hasattr(answer, "model_dump") else answer
    choices = plain.get("choices") if isinstance(plain, Mapping) else None
    if not (isinstance(choices, list) and choices and isinstance(choices[0], Mapping) and "message" in choices[0]):
        raise NetworkError(
            f"the client returned {type(answer).__name__}, which is not a chat completions response",
            details={"phase": "network", "permanent": True},
            next_actions=("return text, or a mapping with choices[0].message",),
        )
    return dict(plain)


def _with_reasoning(response: dict[str, Any], reasoning: tuple[str, str]) -> dict[str, Any]:
    """The response with the reasoning that the client extracted in the place that its format has."""
    text, format = reasoning
    first, *others = response["choices"]
    message = dict(first["message"])
    content = message.get("content")
    if not text or text in (message.get("reasoning"), message.get("reasoning_content")):
        return response
    if format in _TAGGED:
        tagged = isinstance(content, str) and "<think>" in content
        if not tagged:
            message["content"] = f"<think>{text}</think>{content or ''}"
    else:
        message[_FIELDS.get(format, "reasoning_content")] = text
    return {**response, "choices": [{**first, "message": message}, *others]}
