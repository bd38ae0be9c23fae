"""What the readers of bodies with ``choices`` share: which payloads are decoded typed, and which of them are kept.

Promises: a payload of known keys takes the fast path; all else is read as a JSON object, and what follows the first
failure is not read; the envelope can be had from a few payloads that were kept. Must not: know what a choice says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from thinkback.model.blocks import Origin
from thinkback.model.commits import Failure
from thinkback.wire.documents import NOT_LISTED
from thinkback.wire.framing import Framing
from thinkback.wire.reader import BodyReader

Chunk = TypeVar("Chunk")


class ChoicesReader(BodyReader, Generic[Chunk]):
    """A ``BodyReader`` whose payloads are chunks or whole bodies with ``choices``; ``[DONE]`` ends the stream.

    A dialect brings ``_decode``, which raises one of ``NOT_LISTED`` where a payload is no chunk of known keys only;
    ``_read_chunk``, the fast path; and ``_read_object``, for whole bodies and all other chunks.
    """

    _decode: Callable[[bytes], Chunk]
    _read_chunk: Callable[[bytes, Chunk], None]
    _read_object: Callable[[dict[str, Any]], None]

    def __init__(self, origin: Origin, framing: Framing) -> None:
        super().__init__(origin, framing)
        self._kept: dict[str, bytes] = {}
        self._id = ""
        self._model = ""
        self._usage: dict[str, Any] | None = None
        self._envelope: dict[str, Any] = {}
        self._choice: dict[str, Any] = {}

    def _read(self, payloads: list[bytes]) -> None:
        decode = self._decode
        for payload in payloads:
            try:
                chunk = decode(payload)
            except NOT_LISTED:
                self._read_other(payload)
                if self._error is not None:
                    return
            else:
                self._read_chunk(payload, chunk)

    def _read_document(self, payload: bytes) -> None:
        self._read_other(payload)
        self._is_whole = True

    def _read_other(self, payload: bytes) -> None:
        """The slow path."""
        text = payload.strip()
        if not text:
            return
        if text == b"[DONE]":
            self._is_whole = True
            return
        body = self._object(payload)
        if body is not None:
            self._read_object(body)

    def _unfinished(self) -> Failure | None:
        """Why the response is incomplete although nothing said so outright."""
        if self._finish == "error":
            return Failure("the provider ended the response with finish_reason error", type="error")
        return super()._unfinished()

    def _keep(self, what: str, payload: bytes) -> None:
        """Of payloads of one sort only the last is kept; the order is that of arrival."""
        self._kept.pop(what, None)
        self._kept[what] = payload


def rest_of(choice: dict[str, Any]) -> dict[str, Any]:
    """What of a choice is neither read nor null."""
    read = ("message", "delta", "finish_reason", "index")
    return {key: value for key, value in choice.items() if value is not None and key not in read}
