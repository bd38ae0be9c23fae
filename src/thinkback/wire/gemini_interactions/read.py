"""Response reader of the ``gemini-interactions`` dialect: bytes to deltas and blocks, and blocks to one response.

Promises: the same blocks whole, byte by byte and at any cut; the signature of a thought is kept also where there is
no summary; what is not understood is kept (steps, contents, envelope). Must not: do I/O, know hosts.
"""

from __future__ import annotations

from typing import Any

import msgspec

from thinkback.model import canonical
from thinkback.model.blocks import Origin
from thinkback.model.commits import Failure, Response
from thinkback.model.slices import whole
from thinkback.wire.documents import NOT_LISTED
from thinkback.wire.framing import Framing
from thinkback.wire.gemini_interactions import events
from thinkback.wire.gemini_interactions.blocks import steps_of
from thinkback.wire.gemini_interactions.steps import Steps
from thinkback.wire.google import read_failure
from thinkback.wire.reader import BodyReader
from thinkback.wire.result import UNDER_WAY, ReadOptions, ReadResult, Stop, outcome_of
from thinkback.wire.values import plain, source_of

_STOPS: dict[str, Stop] = {
    "completed": "stop",
    "requires_action": "tool_calls",
    "incomplete": "length",
    "budget_exceeded": "length",
    "requires_continuation": "paused",
    "failed": "error",
    "cancelled": "error",
}
_UNDER_WAY = frozenset({"in_progress", "queued"})
_READ = frozenset({"steps", "outputs", "usage", "error"})


class Reader(BodyReader):
    """Feed bytes, get deltas; after ``close`` ask for ``result``. One reader per response."""

    def __init__(
        self, origin: Origin, framing: Framing = "sse", options: ReadOptions | None = None, response: str = ""
    ) -> None:
        super().__init__(origin, framing)
        self._steps = Steps(response)
        self._take = self._steps.take
        self._begun = self._steps.items
        self._look_for_tags(options, response)
        self._envelope: dict[str, Any] = {}
        self._usage: Any = None
        self._status = ""

    def _release(self) -> None:
        self._steps.close()

    def result(self) -> ReadResult:
        """The response as values; call after ``close``."""
        error = self._error or self._unfinished()
        blocks = self._split(self._steps.blocks())
        response = Response(
            origin=msgspec.structs.replace(self._origin, served_model=plain(self._envelope.get("model"))),
            id=plain(self._envelope.get("id")),
            finish=self.finish,
            complete=error is None,
            envelope=source_of(self._envelope),
            error=error,
            blocks=len(blocks),
            outcome=outcome_of(_STOPS.get(self._status, ""), blocks, error),
        )
        return ReadResult(response, tuple(blocks), events.read_usage(self._usage))

    @property
    def finish(self) -> str | None:
        """The ``status`` as reported; ``None`` while the interaction is under way."""
        return None if self._status in _UNDER_WAY else self._status or None

    def _unfinished(self) -> Failure | None:
        """Why the response is incomplete although nothing said so outright."""
        if _STOPS.get(self._status) == "error":
            return Failure(f"the interaction ended with status {self._status}", type="error", code=self._status)
        is_queued = self._status == "queued" and self._tail is None and not self._begun
        if not self._is_whole and not is_queued:
            return self._broken_off()
        if self._status in _UNDER_WAY:
            return Failure(
                f"the interaction has not ended: its status is {self._status}", type=UNDER_WAY, code=self._status
            )
        return None

    def _read(self, payloads: list[bytes]) -> None:
        for payload in payloads:
            try:
                event = events.decode_delta(payload)
            except NOT_LISTED:
                self._read_other(payload)
            else:
                self._read_delta(payload, event)
            if self._error is not None:
                return

    def _read_delta(self, payload: bytes, event: events.StepDelta) -> None:
        """The fast path: a piece of a text, of a summary or of arguments."""
        delta = event.delta
        if delta.content is not None:
            if delta.type == "thought_summary" and delta.text is None and delta.arguments is None:
                self._steps.add_summary(event.index, delta.content.text)
            else:
                self._read_other(payload)
        elif delta.text is not None and delta.type == "text":
            self._steps.add_text(event.index, delta.text)
        elif delta.arguments is not None and delta.type == "arguments_delta":
            self._steps.add_arguments(event.index, delta.arguments)
        else:
            self._read_other(payload)

    def _read_other(self, payload: bytes) -> None:
        """The slow path: anything but a piece of text."""
        text = payload.strip()
        if not text or text == b"[DONE]":
            return
        event = self._object(text)
        if event is not None:
            self._read_event(event)

    def _read_event(self, event: dict[str, Any]) -> None:
        kind, index = str(event.get("event_type")), event.get("index")
        if kind == "error" or event.get("error"):
            self._error = read_failure(200, event)
        elif kind.startswith("interaction."):
            self._read_head(event.get("interaction"))
            self._status = plain(event.get("status")) or self._status
            self._is_whole = self._is_whole or kind in ("interaction.completed", "interaction.complete")
        elif not isinstance(index, int):
            return
        elif kind in ("step.start", "content.start"):
            step = event.get("step", event.get("content"))
            self._steps.begin(index, step if isinstance(step, dict) else {})
        elif kind in ("step.delta", "content.delta") and isinstance(event.get("delta"), dict):
            self._steps.add_delta(index, event["delta"])
        elif kind in ("step.stop", "content.stop"):
            self._steps.stop(index)

    def _read_document(self, payload: bytes) -> None:
        """A body that is not streamed."""
        body = self._object(payload)
        if body is None:
            return
        self._is_whole = True
        self._read_head(body)
        steps = body.get("steps", body.get("outputs"))
        arguments = events.arguments_of(payload)
        for at, step in enumerate(steps if isinstance(steps, list) else ()):
            if isinstance(step, dict):
                self._steps.add(step, arguments[at] if at < len(arguments) else None)
        if body.get("error"):
            self._error = read_failure(200, body)
        elif not isinstance(steps, list) and not self._status:
            self._error = Failure("the response body has no steps", type="malformed")

    def _read_head(self, interaction: Any) -> None:
        """Everything of an interaction but its steps; what comes later wins."""
        if not isinstance(interaction, dict):
            return
        self._envelope.update({key: value for key, value in interaction.items() if key not in _READ})
        self._usage = interaction.get("usage") or self._usage
        self._status = plain(interaction.get("status")) or self._status
        if interaction.get("error"):
            self._error = read_failure(200, interaction)


def raw_response(result: ReadResult) -> dict[str, Any]:
    """The interaction as the wire had it; that of a stream as if it had come whole."""
    response = result.response
    envelope: dict[str, Any] = canonical.decode(response.envelope) if response.envelope else {}
    envelope["steps"] = [canonical.decode(step) for step in steps_of(whole(result.blocks))]
    if result.usage is not None:
        envelope["usage"] = canonical.decode(result.usage.wire)
    return envelope
