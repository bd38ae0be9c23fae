"""One request that went out, and what comes back of it."""

from __future__ import annotations

from thinkback.model.blocks import Block, ThinkingBlock
from thinkback.model.commits import Draft, Failure, block_draft
from thinkback.model.deltas import Delta, ReasoningDelta, Reclassified
from thinkback.turn import failures, unlogged_text
from thinkback.turn.events import Head
from thinkback.turn.plan import History, Plan
from thinkback.turn.reading import open_reader
from thinkback.turn.usage import with_beside
from thinkback.wire.dialect import ResponseReader
from thinkback.wire.result import ReadResult, stamped

# A provider's error body larger than this is cut; error texts are short.
_ERROR_BODY_LIMIT = 65_536


class Exchange:
    """``plan`` was sent; ``response`` is our id of what it brings. It ``stops`` where reasoning comes that must not."""

    def __init__(self, plan: Plan, response: str) -> None:
        self.plan = plan
        self.response = response
        self.headers: dict[str, str] = {}
        self._status = 0
        self._reader: ResponseReader | None = None
        self._body = bytearray()
        # Of a plan that takes no reasoning: blocks that have begun, and whether anything was shown.
        self._begun = 0
        self._has_shown = False
        self.stops = False

    def head(self, event: Head) -> None:
        """Status and headers arrived."""
        self._status, self.headers = event.status, event.headers

    @property
    def is_refused(self) -> bool:
        """Whether the status says no."""
        return self._status != 0 and not 200 <= self._status < 300

    @property
    def has_begun(self) -> bool:
        """Whether something of the response arrived that could be shown."""
        return self._reader is not None

    def feed(self, data: bytes) -> list[Delta]:
        """A piece of the body; what there is to show of it."""
        if self.is_refused:
            self._body += data[: _ERROR_BODY_LIMIT - len(self._body)]
            return []
        if not data:
            return []
        if self._reader is None:
            self._reader = self._open()
        if not self.plan.strict:
            return self._reader.feed(data)
        return [] if self.stops else self._before_reasoning(self._reader, self._reader.feed(data))

    def _before_reasoning(self, reader: ResponseReader, deltas: list[Delta]) -> list[Delta]:
        """Filter ``deltas`` to what may be shown; with reasoning the response is over, and the rest is not read."""
        at = next((at for at, delta in enumerate(deltas) if isinstance(delta, ReasoningDelta | Reclassified)), -1)
        while (block := reader.block(self._begun)) is not None and not self.stops:
            self._begun += 1
            self.stops = isinstance(block, ThinkingBlock)
        self.stops = self.stops or at >= 0
        shown = deltas[:at] if at >= 0 else deltas
        self._has_shown = self._has_shown or shown != []
        return shown

    def block(self, index: int) -> Block | None:
        """The block at ``index`` as far as it has come."""
        return self._reader.block(index) if self._reader is not None else None

    def refusal(self) -> Failure:
        """What the provider said in place of a response."""
        return failures.read_failure(self._status, bytes(self._body), self.plan)

    def end(self, failure: Failure | None = None) -> tuple[list[Delta], ReadResult]:
        """The rest there is to show, and all that arrived. ``failure`` is why it broke off, if it did; a response that
        had said why it finished was whole by then.
        """
        reader = self._reader or self._open()
        if self.stops:
            reader.fail(failures.refused_reasoning(has_shown=self._has_shown))
            reader.close()
            return [], failures.screened(stamped(reader.result()), self.plan)
        if failure is not None and reader.finish is None:
            reader.fail(failure)
        deltas = reader.close()
        return deltas, failures.screened(stamped(reader.result()), self.plan)

    def record(self) -> Draft:
        """What was sent, for the log."""
        return Draft("request", self.plan.record(), self.response)

    def drafts(self, result: ReadResult, history: History, keep_text: bool) -> list[Draft]:
        """Record, response, blocks and usage; without ``keep_text`` readable reasoning is held in ``history`` alone."""
        header = result.response if keep_text else unlogged_text.bare_header(result.response)
        drafts = [self.record(), Draft("response", header, self.response)]
        for at, block in enumerate(result.blocks):
            drafts.append(block_draft(block if keep_text else self._loggable(block, at, history), self.response, at))
        if result.usage is not None:
            word = self.plan.target.rule.reasoning_tokens
            drafts.append(Draft("provider_usage", with_beside(result.usage, word), self.response))
        return drafts

    def _loggable(self, block: Block, at: int, history: History) -> Block:
        if not unlogged_text.is_held(block):
            return block
        history.hold(self.response, at, block)
        return unlogged_text.bare(block)

    def _open(self) -> ResponseReader:
        return open_reader(self.plan, self.response, self.headers.get("content-type", ""))
