"""The reader of a response: chosen by its content type, else by how its body begins."""

from __future__ import annotations

from typing import Any

import msgspec

from thinkback.model.blocks import Block, Origin
from thinkback.model.commits import Failure
from thinkback.model.deltas import Delta
from thinkback.model.target import lookup
from thinkback.turn.custom_calls import CustomCalls
from thinkback.turn.plan import Plan
from thinkback.wire.dialect import ResponseReader
from thinkback.wire.framing import guess_framing
from thinkback.wire.registry import dialect
from thinkback.wire.result import ReadOptions, ReadResult

# The longest beginning that tells server-sent events from JSON.
_ENOUGH = len("event:")


def open_reader(plan: Plan, response: str, content_type: str) -> ResponseReader:
    """A reader for the response ``response`` to ``plan``."""
    if content_type:
        return _reader(plan, response, content_type, b"")
    return _Undecided(plan, response)


def _reader(plan: Plan, response: str, content_type: str, start: bytes) -> ResponseReader:
    target = plan.target
    origin = msgspec.structs.replace(origin_of(plan), request=response)
    framing = guess_framing(content_type, start)
    wanted, rule = plan.wanted, target.rule
    options = ReadOptions(
        wanted.field_name or rule.reasoning_field,
        rule.leaked_calls if plan.leaked_calls != "text" else "",
        wanted.tags or rule.tags,
    )
    reader = dialect(target.endpoint.dialect).reader(origin, framing, options, response)
    return CustomCalls(reader, plan.as_functions) if plan.as_functions else reader


def origin_of(plan: Plan) -> Origin:
    """Who mints what the response to ``plan`` brings."""
    target = plan.target
    return Origin(
        dialect=target.endpoint.dialect,
        endpoint=target.base_url,
        requested_model=target.model,
        account=target.account,
        account_known=target.account_known,
        end_user=end_user_of(target.rule.guard.end_user, plan.params),
    )


def end_user_of(path: str, params: dict[str, Any]) -> str:
    """The end user that a request names, where the rule has a place for one."""
    named = lookup(params, path) if path else None
    return named if isinstance(named, str) else ""


class _Undecided:
    """Holds the beginning of the body back until it tells what it is, wherever its pieces end."""

    def __init__(self, plan: Plan, response: str) -> None:
        self._plan = plan
        self._response = response
        self._start = b""
        self._chosen: ResponseReader | None = None

    def feed(self, data: bytes) -> list[Delta]:
        if self._chosen is not None:
            return self._chosen.feed(data)
        self._start += data
        return self._choose()[1] if len(self._start.lstrip()) >= _ENOUGH else []

    def close(self) -> list[Delta]:
        reader, deltas = self._choose()
        return deltas + reader.close()

    def fail(self, failure: Failure) -> None:
        self._choose()[0].fail(failure)

    def result(self) -> ReadResult:
        return self._choose()[0].result()

    def block(self, index: int) -> Block | None:
        return self._chosen.block(index) if self._chosen is not None else None

    @property
    def finish(self) -> str | None:
        return self._choose()[0].finish

    def _choose(self) -> tuple[ResponseReader, list[Delta]]:
        """The reader, and what of the beginning there is to show."""
        if self._chosen is not None:
            return self._chosen, []
        self._chosen = _reader(self._plan, self._response, "", self._start)
        return self._chosen, self._chosen.feed(self._start)
