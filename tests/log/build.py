"""Histories, written as what was said on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count

from thinkback.log import drafting
from thinkback.log.merge import MergeResult, merge
from thinkback.log.seal import head_of, seal
from thinkback.model.blocks import Block, Origin, Text, ThinkingBlock, ToolCall, ToolResult
from thinkback.model.commits import (
    Annotation,
    Commit,
    Draft,
    Message,
    Priority,
    Request,
    Response,
    Step,
    TurnEnded,
    TurnState,
    Usage,
    block_draft,
)
from thinkback.model.curation import curate
from thinkback.model.texts import text_of

ORIGIN = Origin("openai-chat", "https://api.example.com/v1", "reasoner")
RECORD = Request({"endpoint": "e", "model": "m"}, {}, (), "{}", "", "", "", "", "", "", "")


def ids(prefix: str = "fresh") -> Callable[[], str]:
    """Ids, one after the other."""
    numbers: Iterator[int] = count()
    return lambda: f"{prefix}-{next(numbers)}"


class Line:
    """A history under construction; two lines of one clock never make the same commit."""

    def __init__(self, commits: Sequence[Commit] = (), clock: Iterator[int] | None = None) -> None:
        self.commits = list(commits)
        self.clock = clock if clock is not None else count(1)

    def fork(self, at: int | None = None) -> Line:
        """Another line that begins with this one's commits up to ``at``."""
        return Line(self.commits[:at], self.clock)

    def add(self, *drafts: Draft) -> list[Commit]:
        """One step."""
        made = seal(Step("", drafts, next(self.clock)), head_of(self.commits))
        self.commits += made
        return made

    def user(self, text: str) -> Commit:
        """A user message."""
        return self.add(Draft("user", Message(text)))[0]

    def respond(self, *blocks: Block, id: str = "", ends: TurnState | None = None, complete: bool = True) -> str:
        """A response as a turn stores it; returns its id."""
        id = id or f"r{next(self.clock)}"
        drafts = [
            Draft("request", RECORD, id),
            Draft("response", Response(ORIGIN, complete=complete, blocks=len(blocks)), id),
        ]
        drafts += [block_draft(block, id, at) for at, block in enumerate(blocks)]
        drafts.append(Draft("provider_usage", Usage(1, 2), id))
        if ends is not None:
            drafts.append(Draft("turn_ended", TurnEnded(ends)))
        self.add(*drafts)
        return id

    def answer(self, text: str, thought: str = "hm") -> str:
        """A whole answer with a thought before it."""
        return self.respond(ThinkingBlock(thought), Text(text), ends="completed")

    def call(self, *names: str, thought: str = "I need a tool") -> str:
        """A response that calls tools; a call's id is its name."""
        return self.respond(ThinkingBlock(thought), *(ToolCall(name, name, "{}") for name in names))

    def result(self, call: str, text: str = "done", response: str = "") -> Commit:
        """The result of a call."""
        return self.add(Draft("tool_result", ToolResult(call, text, call), response))[0]

    def turn(self, question: str, text: str) -> None:
        """A question and its answer."""
        self.user(question)
        self.answer(text)

    def edit(self, target: Commit, text: str) -> Commit:
        """``target`` with another text."""
        return self.add(drafting.edit(target, text))[0]

    def mark(self, target: Commit | str, priority: Priority | None = None, **said: object) -> Commit:
        """An annotation."""
        hash = target if isinstance(target, str) else target.hash
        return self.add(Draft("annotation", Annotation(hash, priority, **said)))[0]  # type: ignore[arg-type]

    def merge(self, other: Line, **options: object) -> MergeResult:
        """Take ``other`` in, if it can be."""
        result = merge(self.commits, other.commits, "other", next(self.clock), ids(f"m{next(self.clock)}"), **options)  # type: ignore[arg-type]
        if result.kind == "fast_forward":
            self.commits = list(other.commits)
        self.commits += result.commits
        return result

    def of(self, text: str) -> Commit:
        """The first commit that says ``text``."""
        return next(commit for commit in self.commits if text_of(commit.value) == text and not commit.edit)

    @property
    def texts(self) -> list[str]:
        """What is said on the line, as it is said now; what is skipped in brackets."""
        return texts(self.commits)


def texts(commits: Sequence[Commit]) -> list[str]:
    """What a history says, as it is said now; what is skipped in brackets."""
    curation = curate(commits)
    told = []
    for commit in commits:
        text = "" if commit.edit else text_of(curation.value(commit))
        if text:
            told.append(f"({text})" if curation.mark(commit.hash).priority is Priority.SKIP else text)
    return told
