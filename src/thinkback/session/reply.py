"""What a turn gives back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from thinkback.model.blocks import Block, Text, ThinkingBlock, ToolCall, is_place
from thinkback.model.commits import USAGE_COUNTS, Commit, Outcome, TurnState, Usage
from thinkback.model.target import Decision, Decisions
from thinkback.model.texts import thoughts_of
from thinkback.session.transcripts import notebook
from thinkback.session.transcripts.endings import ending
from thinkback.turn import events
from thinkback.turn.plan import Plan
from thinkback.turn.usage import TokenUse, summed, token_use
from thinkback.wire.registry import dialect
from thinkback.wire.result import ReadResult


class StepReply(msgspec.Struct, frozen=True):
    """One response of the turn, with the commits it was stored as."""

    result: ReadResult
    commits: tuple[Commit, ...]

    def __repr__(self) -> str:
        return f"<StepReply: {len(self.text)} characters, {len(self.tool_calls)} calls>"

    @property
    def text(self) -> str:
        """Visible text; white space that stood behind a closing tag is taken off."""
        return visible_text(self.result.blocks)

    @property
    def reasoning(self) -> str | None:
        """Readable reasoning, ``None`` when there is none."""
        return readable_reasoning(self.result.blocks)

    @property
    def tool_calls(self) -> list[ToolCall]:
        """The calls of this response."""
        return [block for block in self.result.blocks if isinstance(block, ToolCall)]


class Reply:
    """The outcome of a turn. ``text`` and ``reasoning`` are those of its last response; ``steps`` has them all.

    ``state``: completed, partial_failed, failed, interrupted, timed_out, capped, denied, stalled; ``None`` where calls
    wait for results. ``reason`` says why, where there is more to say. ``decisions`` are those of the last request.
    """

    def __init__(self, outcome: events.Outcome, prompt: str | None) -> None:
        self.state: TurnState | None = outcome.state
        self.reason = outcome.reason
        self.prompt = prompt
        self.plan: Plan | None = outcome.plan
        self.steps = tuple(StepReply(result, commits) for result, commits in outcome.responses)

    @property
    def text(self) -> str:
        """The visible answer; empty when there is none."""
        return self.steps[-1].text if self.steps else ""

    @property
    def reasoning(self) -> str | None:
        """Readable reasoning of the last response."""
        return self.steps[-1].reasoning if self.steps else None

    @property
    def reasoning_commit(self) -> Commit | None:
        """The first reasoning commit of the last response; ``None`` too where reasoning is not kept."""
        found = self._last("reasoning")
        is_kept = found is not None and isinstance(found.value, ThinkingBlock) and not is_place(found.value)
        return found if is_kept else None

    @property
    def commit_info(self) -> Commit | None:
        """The commit of the answer's text."""
        return self._last("assistant")

    @property
    def usage(self) -> Usage | None:
        """Tokens summed over the turn's responses, as reported; ``None`` when nothing was."""
        return total([step.result.usage for step in self.steps if step.result.usage is not None])

    @property
    def tokens(self) -> TokenUse | None:
        """Tokens of the turn in one meaning for all dialects; ``None`` while there is no response."""
        word = self.plan.target.rule.reasoning_tokens if self.plan else "unknown"
        return summed(token_use(step.result.usage, step.result.blocks, word) for step in self.steps)

    @property
    def outcome(self) -> Outcome:
        """How the last response came out: answered, tool_calls, max_tokens_in_reasoning, refused, safety ..."""
        return self.steps[-1].result.response.outcome if self.steps else ""

    @property
    def ending(self) -> str:
        """In a sentence, how the last response came out if it is no answer, or not a whole one; else empty."""
        return ending(self.outcome, self.steps[-1].result.blocks) if self.steps else ""

    @property
    def decisions(self) -> list[Decision]:
        """What was done with each block of earlier reasoning in the turn's last request, and why."""
        return Decisions(self.plan.decisions if self.plan else [])

    @property
    def tool_calls(self) -> list[ToolCall]:
        """The calls of the last response."""
        return self.steps[-1].tool_calls if self.steps else []

    @property
    def generation_config(self) -> dict[str, Any]:
        """Model and native parameters of the last request."""
        return {"model": self.plan.target.model, **self.plan.params} if self.plan else {}

    @property
    def raw_response(self) -> dict[str, Any] | None:
        """The last response rebuilt in its provider's own form."""
        if not self.steps:
            return None
        result = self.steps[-1].result
        return dialect(result.response.origin.dialect).raw_response(result)

    @property
    def is_reasoning_only(self) -> bool:
        """Whether the model reasoned and said nothing."""
        return (
            bool(self.steps) and not self.text.strip() and not self.tool_calls and self._last("reasoning") is not None
        )

    def _last(self, kind: str) -> Commit | None:
        commits = self.steps[-1].commits if self.steps else ()
        return next((commit for commit in commits if commit.kind == kind), None)

    def __repr__(self) -> str:
        return f"<Reply {self.state or 'open'}: {len(self.text)} characters, {len(self.steps)} steps>"

    def _repr_html_(self) -> str:
        """For notebooks: reasoning folded, and the answer."""
        return notebook.reply_html(self.text, self.reasoning, self._summary)

    def _repr_markdown_(self) -> str:
        """The same as Markdown."""
        return notebook.reply_markdown(self.text, self.reasoning, self._summary)

    @property
    def _summary(self) -> str:
        where = f"{self.plan.target.endpoint.id} {self.plan.target.model}" if self.plan else ""
        used = self.tokens
        counts = f"{used.input} tokens in, {used.output} out" if used is not None else ""
        return ", ".join(word for word in (self.state or "waits for results", self.ending, where, counts) if word)


def total(reported: Sequence[Usage]) -> Usage | None:
    """Usages together; ``None`` where there are none."""
    if len(reported) < 2:
        return reported[0] if reported else None
    counts = {name: [getattr(usage, name) for usage in reported] for name in USAGE_COUNTS}
    summed = Usage()
    for name, found in counts.items():
        if any(count is not None for count in found):
            # A sum may be above what one response can have.
            msgspec.structs.force_setattr(summed, name, sum(count for count in found if count is not None))
    return summed


def visible_text(blocks: Sequence[Block]) -> str:
    """Text blocks joined; where tags were taken out, the white space they left is taken off too."""
    text = "".join(block.text for block in blocks if isinstance(block, Text))
    tagged = any(isinstance(block, ThinkingBlock) and block.source_field == "content" for block in blocks)
    return text.strip() if tagged else text


def readable_reasoning(blocks: Sequence[Block]) -> str | None:
    """Reasoning a person can read; ``None`` where there is none."""
    return thoughts_of(blocks) or None
