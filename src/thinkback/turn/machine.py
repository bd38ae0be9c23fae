"""The turn: from a user message to a terminal state, as a state machine.

``on(event)`` returns commands. Promises: a step is stored before its tools run and before ``Done``; a response is
one step, each tool result another; retries happen only before the first byte of a body; whatever ends the turn,
every byte that arrived is in the log and the outcome says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, assert_never

import msgspec

from thinkback.errors import NetworkError, PhaseTimeout, ProviderError, ThinkbackError
from thinkback.model import canonical
from thinkback.model.blocks import Origin, ThinkingBlock, ToolCall, ToolResult
from thinkback.model.commits import (
    Commit,
    Draft,
    Failure,
    Message,
    Step,
    Tool,
    Tools,
    TurnEnded,
    TurnState,
    block_draft,
)
from thinkback.model.deltas import Status
from thinkback.turn import orphans
from thinkback.turn.dialects import ResponseReader, dialect
from thinkback.turn.events import (
    Append,
    Appended,
    Began,
    Bytes,
    Cancel,
    Closed,
    Command,
    Done,
    Emit,
    Event,
    Fired,
    Head,
    Interrupt,
    NetError,
    Outcome,
    RunTool,
    Send,
    Timer,
    ToolDone,
)
from thinkback.turn.plan import History, Plan
from thinkback.turn.repair import MAX_REPAIRS, Stage, next_repair
from thinkback.turn.retry import backoff, is_retryable
from thinkback.wire.framing import guess_framing
from thinkback.wire.result import ReadOptions, ReadResult

# A provider's error body larger than this is cut; error texts are short.
_ERROR_BODY_LIMIT = 65_536


class Ask(msgspec.Struct):
    """What the caller wants of a turn.

    ``plan`` builds the next request from live settings; ``message`` is ``None`` to go on with what is in the log.
    ``runnable`` are the names of tools that ``RunTool`` can run. ``keep_text=False`` keeps readable reasoning out
    of the log; it stays in memory until the turn ends.
    """

    plan: Callable[[], Plan]
    message: Message | None = None
    system: str | None = None
    tools: tuple[Tool, ...] | None = None
    runnable: frozenset[str] = frozenset()
    max_steps: int = 25
    max_retries: int = 3
    keep_text: bool = True


class Turn:
    """One turn. ``ids`` gives fresh random ids; ``jitter`` a number in [0, 1) for the backoff."""

    def __init__(self, history: History, ask: Ask, ids: Callable[[], str], jitter: Callable[[], float]) -> None:
        self._history = history
        self._ask = ask
        self._ids = ids
        self._jitter = jitter
        self._steps = 0
        self._retries = 0
        self._repairs = 0
        self._stage: Stage | None = None
        self._request = ""
        self._plan: Plan | None = None
        self._reader: ResponseReader | None = None
        self._status = 0
        self._headers: dict[str, str] = {}
        self._body = bytearray()
        self._got_bytes = False
        self._responses: list[tuple[ReadResult, tuple[Commit, ...]]] = []
        self._reading: ReadResult | None = None
        self._calls: dict[str, ToolCall] = {}
        self._pending: dict[str, Callable[[Appended], list[Command]]] = {}
        self._overlay: dict[str, dict[int, ThinkingBlock]] = {}
        self._interrupted = False
        self._ended = False

    def on(self, event: Event) -> list[Command]:
        """Take one event; returns the commands it leads to. Events after ``Done`` are ignored."""
        if self._ended:
            return []
        match event:
            case Began():
                return self._begin(event.now)
            case Head():
                return self._on_head(event)
            case Bytes():
                return self._on_bytes(event)
            case Closed():
                return self._on_closed(event)
            case NetError():
                return self._on_net_error(event)
            case Appended():
                return self._on_appended(event)
            case ToolDone():
                return self._on_tool_done(event)
            case Fired():
                return self._send(event.now) if event.id == self._request else []
            case Interrupt():
                return self._on_interrupt(event.now)
            case _:
                assert_never(event)

    # -- the opening -----------------------------------------------------------------------------------------------

    def _begin(self, now: int) -> list[Command]:
        """Mend what an earlier, broken-off turn left, then store what this one begins with."""
        drafts = orphans.closing_drafts(self._history.commits, new_turn=self._ask.message is not None)
        ask = self._ask
        if ask.system is not None and ask.system != orphans.last_system(self._history.commits):
            drafts.append(Draft("system", Message(ask.system)))
        if ask.tools is not None and ask.tools != self._history.tools:
            drafts.append(Draft("tools", Tools(ask.tools)))
        if ask.message is not None:
            drafts.append(Draft("user", ask.message))
        if not drafts:
            return self._send(now)
        return self._append(drafts, now, lambda done: self._send(done.now))

    def _send(self, now: int) -> list[Command]:
        if self._interrupted:
            return self._end("interrupted", now)
        self._request = self._ids()
        self._reader, self._got_bytes, self._status = None, False, 0
        self._body.clear()
        try:
            self._plan = self._ask.plan()
        except ThinkbackError as error:
            return self._end("failed", now, error)
        return [Emit(Status("sending", self._plan.target.model)), Send(self._request, self._plan)]

    # -- the response ----------------------------------------------------------------------------------------------

    def _on_head(self, event: Head) -> list[Command]:
        if event.id == self._request:
            self._status, self._headers = event.status, event.headers
        return []

    def _on_bytes(self, event: Bytes) -> list[Command]:
        if event.id != self._request or not event.data:
            return []
        if self._status >= 400:
            self._body += event.data[: _ERROR_BODY_LIMIT - len(self._body)]
            return []
        self._got_bytes = True
        if self._reader is None:
            self._reader = self._open_reader(event.data)
        return [Emit(delta) for delta in self._reader.feed(event.data)]

    def _open_reader(self, start: bytes) -> ResponseReader:
        plan = self._plan
        assert plan is not None
        target = plan.target
        origin = Origin(
            dialect=target.endpoint.dialect,
            endpoint=target.base_url,
            requested_model=target.model,
            account=target.account,
            account_known=target.account_known,
            request=self._request,
        )
        framing = guess_framing(self._headers.get("content-type", ""), start)
        options = ReadOptions(target.rule.reasoning_field)
        return dialect(target.endpoint.dialect).reader(origin, framing, options, self._request)

    def _on_closed(self, event: Closed) -> list[Command]:
        if event.id != self._request:
            return []
        if self._status >= 400:
            return self._on_refusal(event.now)
        reader = self._reader or self._open_reader(b"")
        deltas: list[Command] = [Emit(delta) for delta in reader.close()]
        return deltas + self._store_response(reader.result(), event.now, "partial_failed")

    def _store_response(self, result: ReadResult, now: int, broken: TurnState) -> list[Command]:
        """One transaction: the request's record, the response, its blocks, its usage, and the end if it is one."""
        response, plan = self._request, self._plan
        assert plan is not None
        self._reading = result
        self._steps += 1
        drafts = [Draft("request", plan.record(), response), Draft("response", result.response, response)]
        drafts += [self._block_draft(block, response, at) for at, block in enumerate(result.blocks)]
        if result.usage is not None:
            drafts.append(Draft("provider_usage", result.usage, response))
        state, reason = self._state_after(result, broken)
        if state is not None:
            drafts.append(Draft("turn_ended", TurnEnded(state, reason)))
        return self._append(drafts, now, lambda done: self._after_response(done, state))

    def _block_draft(self, block: Any, response: str, at: int) -> Draft:
        draft = block_draft(block, response, at)
        if self._ask.keep_text or not isinstance(block, ThinkingBlock):
            return draft
        self._overlay.setdefault(response, {})[at] = block
        bare = msgspec.structs.replace(block, thought="", kind="none", wire="", origin=None)
        return Draft(draft.kind, bare, response, at)

    def _state_after(self, result: ReadResult, broken: TurnState) -> tuple[TurnState | None, str]:
        """The terminal state this response brings, or ``None`` when its calls are to be run."""
        error = result.response.error
        if error is not None:
            empty = not result.blocks and broken == "partial_failed"
            return ("failed" if empty else broken), error.message
        calls = [block for block in result.blocks if isinstance(block, ToolCall)]
        if not calls:
            return "completed", ""
        if self._ask.runnable and self._steps >= self._ask.max_steps:
            return "capped", f"{self._ask.max_steps} steps"
        return None, ""

    def _after_response(self, done: Appended, state: TurnState | None) -> list[Command]:
        result = self._reading
        assert result is not None
        self._responses.append((result, done.commits))
        self._retries = 0
        if state is not None:
            return self._finish(state, self._error_of(result, state))
        calls = [block for block in result.blocks if isinstance(block, ToolCall)]
        if not self._ask.runnable:
            return self._finish(None, None)
        if self._interrupted:
            return self._end_interrupted_tools(calls, done.now)
        self._calls = {self._ids(): call for call in calls}
        started: list[Command] = [Emit(Status("tool_started", call.name)) for call in calls]
        return started + [RunTool(id, call) for id, call in self._calls.items()]

    def _error_of(self, result: ReadResult, state: TurnState) -> Exception | None:
        error = result.response.error
        if state in ("completed", "capped", "interrupted") or error is None:
            return None
        if state == "timed_out":
            return PhaseTimeout(error.message, details={"partial": True})
        kind = NetworkError if error.type in ("network", "truncated") else ProviderError
        return kind(
            error.message,
            details={"status": error.status, "code": error.code, "type": error.type, "partial": bool(result.blocks)},
            next_actions=("what arrived is in the log, marked incomplete; send again to retry the turn",),
        )

    # -- tools -----------------------------------------------------------------------------------------------------

    def _on_tool_done(self, event: ToolDone) -> list[Command]:
        call = self._calls.pop(event.id, None)
        if call is None:
            return []
        result = ToolResult(call.id, event.content, name=call.name, is_error=event.is_error)
        finished: list[Command] = [Emit(Status("tool_finished", call.name))]
        return finished + self._append([Draft("tool_result", result, self._request)], event.now, self._after_tool)

    def _after_tool(self, done: Appended) -> list[Command]:
        if self._calls or self._pending:
            return []
        return self._send(done.now)

    # -- failures --------------------------------------------------------------------------------------------------

    def _on_refusal(self, now: int) -> list[Command]:
        """An HTTP error: repair it if it is about reasoning, wait and send again if that may help, else end."""
        failure = self._failure()
        plan = self._plan
        assert plan is not None
        if self._repairs < MAX_REPAIRS:
            repair = next_repair(plan, failure, self._history.commits, self._stage)
            if repair is not None:
                self._repairs += 1
                self._stage = repair.stage
                told: list[Command] = [Emit(Status("repairing", failure.message))]
                return told + self._append([Draft("repair", repair)], now, lambda done: self._send(done.now))
        if is_retryable(failure.status) and self._retries < self._ask.max_retries:
            return self._wait(f"HTTP {failure.status}", self._headers.get("retry-after", ""))
        error = ProviderError(
            f"{plan.target.endpoint.id} answered {failure.status}: {failure.message}",
            details={"status": failure.status, "code": failure.code, "type": failure.type, "model": plan.target.model},
            next_actions=_advice(failure.status, plan),
        )
        return self._end("failed", now, error)

    def _failure(self) -> Failure:
        plan = self._plan
        assert plan is not None
        text = bytes(self._body)
        try:
            body: Any = canonical.decode(text)
        except msgspec.DecodeError:
            body = text.decode("utf-8", "replace").strip() or "no error text"
        return dialect(plan.target.endpoint.dialect).failure(self._status, body)

    def _wait(self, reason: str, retry_after: str) -> list[Command]:
        self._retries += 1
        seconds = backoff(self._retries, retry_after, self._jitter())
        self._request = self._ids()
        return [Emit(Status("retrying", f"{reason}; again in {seconds:.1f} s")), Timer(self._request, seconds)]

    def _on_net_error(self, event: NetError) -> list[Command]:
        if event.id != self._request:
            return []
        timed_out = event.phase != "network"
        if self._reader is None or not self._got_bytes:
            if self._retries < self._ask.max_retries and event.phase != "total":
                return self._wait(event.message, "")
            kind = PhaseTimeout if timed_out else NetworkError
            error = kind(event.message, details={"phase": event.phase}, next_actions=("check the address and network",))
            return self._end("timed_out" if timed_out else "failed", event.now, error)
        state: TurnState = "timed_out" if timed_out else "partial_failed"
        return self._break_off(Failure(event.message, type="timeout" if timed_out else "network"), event.now, state)

    def _break_off(self, failure: Failure, now: int, state: TurnState) -> list[Command]:
        """Store what arrived of a response that will not be finished."""
        reader = self._reader
        assert reader is not None
        reader.fail(failure)
        deltas: list[Command] = [Emit(delta) for delta in reader.close()]
        return deltas + self._store_response(reader.result(), now, state)

    def _on_interrupt(self, now: int) -> list[Command]:
        if self._interrupted:
            return []
        self._interrupted = True
        if self._pending:
            return []
        if self._calls:
            return self._end_interrupted_tools(list(self._calls.values()), now)
        cancel: list[Command] = [Cancel(self._request)] if self._request else []
        if self._reader is not None and self._got_bytes:
            return cancel + self._break_off(Failure("interrupted", type="interrupted"), now, "interrupted")
        return cancel + self._end("interrupted", now)

    def _end_interrupted_tools(self, calls: Iterable[ToolCall], now: int) -> list[Command]:
        """Calls that did not finish are told so in the log, so that the next request is valid."""
        self._calls = {}
        drafts = [
            Draft("tool_result", orphans.interrupted(call), self._request)
            for call in calls
        ]
        drafts.append(Draft("turn_ended", TurnEnded("interrupted")))
        return self._append(drafts, now, lambda _: self._finish("interrupted", None))

    # -- the log ---------------------------------------------------------------------------------------------------

    def _append(self, drafts: list[Draft], now: int, then: Callable[[Appended], list[Command]]) -> list[Command]:
        id = self._ids()
        self._pending[id] = then
        return [Append(id, Step(id, tuple(drafts), now))]

    def _on_appended(self, event: Appended) -> list[Command]:
        then = self._pending.pop(event.id, None)
        if then is None:
            return []
        self._history.take([*event.between, *map(self._with_text, event.commits)])
        if self._interrupted and not self._pending and then == self._after_tool:
            return self._end_interrupted_tools(self._calls.values(), event.now)
        return then(event)

    def _with_text(self, commit: Commit) -> Commit:
        """The commit as this turn needs it: with text that was kept out of the log."""
        block = self._overlay.get(commit.response, {}).get(commit.index)
        return commit if block is None else msgspec.structs.replace(commit, value=block)

    def _end(self, state: TurnState, now: int, error: Exception | None = None) -> list[Command]:
        reason = error.message if isinstance(error, ThinkbackError) else ""
        drafts = [Draft("turn_ended", TurnEnded(state, reason))]
        return self._append(drafts, now, lambda _: self._finish(state, error))

    def _finish(self, state: TurnState | None, error: Exception | None) -> list[Command]:
        self._ended = True
        if self._overlay:
            self._history.replace([_stored(commit) for commit in self._history.commits])
        return [Done(Outcome(state, tuple(self._responses), self._plan, error))]


def _stored(commit: Commit) -> Commit:
    """The commit as the log has it."""
    value = canonical.decode(commit.payload, type(commit.value))
    return msgspec.structs.replace(commit, value=value)


def _advice(status: int, plan: Plan) -> tuple[str, ...]:
    if status in (401, 403):
        names = " or ".join(plan.target.endpoint.auth.env) or "api_key="
        return (f"check the key: {names}",)
    if status == 404:
        return (f"check the model name {plan.target.model!r} and the base URL {plan.target.base_url}",)
    if status == 429:
        return ("wait, or use another endpoint",)
    return ("`thinkback why` shows what was sent and why",)
