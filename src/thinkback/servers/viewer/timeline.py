"""Where the time of a turn went: to models, tools and people, as the log has it.

Promises: spans follow one another and none overlaps. A response is stored when it is whole, so that its thinking and
answering are told apart by their tokens: about. Must not: know HTML.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from operator import itemgetter
from typing import Literal, NamedTuple, TypeAlias

from thinkback.model.blocks import ToolResult
from thinkback.model.commits import Commit, Message, PermissionDecision, Response
from thinkback.servers.viewer.conversation import Entry, thought_share

_MILLION = 1_000_000

Doing: TypeAlias = Literal["thinking", "answering", "tools", "waiting"]


class Span(NamedTuple):
    """What was done from ``begin`` on, for so many ``seconds``."""

    doing: Doing
    begin: float
    seconds: float


class Timeline(NamedTuple):
    """The spans of a turn, and the seconds they take together."""

    spans: tuple[Span, ...] = ()
    seconds: float = 0.0

    def of(self, doing: Doing) -> float:
        """The seconds that went to it."""
        return sum(span.seconds for span in self.spans if span.doing == doing)


NONE = Timeline()


def timeline_of(entries: Sequence[Entry], at: int) -> Timeline:
    """The turn that the entry number ``at`` opens."""
    following = (entries[number] for number in range(at, len(entries)))  # a slice would have all of them made
    turn = [*takewhile(lambda entry: entry.turn == entries[at].turn, following)]
    began = last = turn[0].first.time
    spans: list[Span] = []
    stored = [(commit.seq, commit, entry) for entry in turn for commit in entry.commits]
    for _, commit, of in sorted(stored, key=itemgetter(0)):
        if commit.time > last:
            begin, seconds = (last - began) / _MILLION, (commit.time - last) / _MILLION
            for doing, share in _until(commit, of):
                spans.append(Span(doing, begin, seconds * share))
                begin += seconds * share
            last = commit.time
    return Timeline(tuple(spans), (last - began) / _MILLION) if spans else NONE


def _until(commit: Commit, entry: Entry) -> Iterator[tuple[Doing, float]]:
    """What went on until ``commit`` was stored, with its part of the time."""
    match commit.value:
        case Response():
            thought = thought_share(entry)
            if thought > 0:
                yield "thinking", thought
            if thought < 1:
                yield "answering", 1 - thought
        case ToolResult():
            yield "tools", 1.0
        case PermissionDecision(by="person") | Message():
            yield "waiting", 1.0
