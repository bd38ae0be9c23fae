"""What a list of sessions shows of one: its title, models, turns and tokens, counted over the commits it stored itself.

Promises: counted step by step it comes to the same as over all of them at once. Copies, which have neither the record
of a request nor the mark of an import, do not count twice. Must not: estimate, or read another session's commits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from thinkback.log.agents import words_of
from thinkback.model.commits import Commit, Compaction, Message, Payload, Response, TurnEnded, Usage, surviving

KINDS = frozenset({"user", "request", "response", "turn_ended", "provider_usage", "compaction"})
"""The kinds of commits that are counted; of all others only the time is."""
TITLE = 80
"""Characters of a title."""


MOST = 10**15
"""No session has used more tokens; a larger sum has a number in it that no provider can have counted."""


class Tally(msgspec.Struct, frozen=True):
    """``title`` is the first line of what a person said first, cut; ``models`` those that answered, sorted; ``turns``
    how many ended; ``tokens`` (input with what was cached, output with what was reasoned) and ``reasoning`` what
    providers reported; ``last`` the latest time of a commit, in microseconds UTC, 0 without one.
    """

    title: str = ""
    models: tuple[str, ...] = ()
    turns: int = 0
    tokens: int = 0
    reasoning: int = 0
    last: int = 0

    def plus(self, more: Tally) -> Tally:
        """With what was stored after it."""
        return Tally(
            self.title or more.title,
            tuple(sorted({*self.models, *more.models})),
            self.turns + more.turns,
            self.tokens + more.tokens,
            self.reasoning + more.reasoning,
            max(self.last, more.last),
        )


def tally(commits: Iterable[Commit], asked: Collection[str] = ()) -> Tally:
    """The tally of ``commits``, in order. ``asked``: responses whose requests stand before these commits."""
    title, models, known = "", set[str](), set(asked)
    turns = tokens = reasoning = last = 0
    for commit in commits:
        last = max(last, commit.time)
        if commit.edit or commit.kind not in KINDS:
            continue
        if commit.kind == "request":
            known.add(commit.response)
        match value := left_of(commit.value):
            case Message() if commit.kind == "user":
                title = title or title_of(words_of(value.text))
            case Response():
                models.add(_whole(value.origin.served_model or value.origin.requested_model))
            case TurnEnded():
                turns += 1
            case Usage() if value.program or commit.response in known:
                tokens += (value.whole_input() or 0) + (value.whole_output() or 0)
                reasoning += value.reasoning or 0
            case Compaction(usage=Usage() as used):
                tokens += (used.whole_input() or 0) + (used.whole_output() or 0)
                reasoning += used.reasoning or 0
            case _:
                pass
    return Tally(title, tuple(sorted(models - {""})), turns, tokens, reasoning, last)


def unasked(commits: Iterable[Commit]) -> list[str]:
    """Responses whose use ``commits`` tell and whose requests are not among them."""
    told = {commit.response for commit in commits if commit.kind == "provider_usage"}
    return sorted(told - {commit.response for commit in commits if commit.kind == "request"})


def titles_of(commits: Iterable[Commit]) -> frozenset[str]:
    """What the title of a session with ``commits`` may be, its first message unknown; empty where none says anything.

    Summaries that were counted earlier may have what a program wrote before the words of a person.
    """
    found, whole = set[str](), set[str]()
    for commit in commits:
        value = left_of(commit.value)
        if commit.kind == "user" and not commit.edit and isinstance(value, Message):
            found.add(title_of(words_of(value.text)))
            whole.add(title_of(value.text))
    return frozenset((found - {""} or {""}) | whole - {""})


def title_of(text: str) -> str:
    """The first line of a text that says something, cut."""
    line = next((line for line in text.splitlines() if line.strip()), "")
    return _whole(" ".join(line.split())[:TITLE])


def left_of(value: Payload) -> Payload:
    """What is left of a payload; a tombstone whose remainder cannot be read says nothing."""
    try:
        return surviving(value)
    except ValueError:
        return value


def _whole(text: str) -> str:
    """``text`` without halves of characters, which a column cannot hold."""
    return text.encode("utf-8", "replace").decode() if not text.isascii() else text
