"""The reasoning of a session as people look through it: one entry per response that reasoned."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from thinkback.cli import terminal
from thinkback.model.blocks import ThinkingBlock, is_shown
from thinkback.model.commits import Request, Response, surviving
from thinkback.model.texts import thoughts_of

if TYPE_CHECKING:
    from thinkback.cli.chat.chat import Chat
    from thinkback.model.commits import Commit
    from thinkback.session.session import Session

HIDDEN = "(the provider keeps its text)"


class Thought(NamedTuple):
    """``response`` is its id, empty for reasoning by hand. ``seconds`` is the part of the response's time that its
    part of the tokens stands for; 0 where that is not known. ``estimated``: the provider did not count the tokens.
    """

    response: str
    hash: str
    text: str
    seconds: float
    tokens: int
    estimated: bool = False


def of(session: Session) -> list[Thought]:
    """The reasoning on the current branch, oldest first."""
    commits = session.log()
    uses = {step.commit: step.use for step in session.usage.steps()}
    used = {commit.response: uses[commit.hash] for commit in commits if commit.hash in uses}
    took = _durations(commits)
    found: dict[str, Thought] = {}
    told: dict[str, list[ThinkingBlock]] = defaultdict(list)
    for commit in commits:
        block = surviving(commit.value)
        if not isinstance(block, ThinkingBlock) or not is_shown(block):
            continue
        before = found.get(commit.response)
        told[commit.response].append(block)
        text = thoughts_of(told[commit.response]) if commit.response else block.thought
        use = used.get(commit.response)
        tokens = (use.reasoning or 0) if use is not None else 0
        share = tokens / use.output if use is not None and use.output else 1.0
        seconds = took.get(commit.response, 0.0) * min(share, 1.0)
        first = before.hash if before is not None else commit.hash
        estimated = use is not None and use.estimated
        found[commit.response or commit.hash] = Thought(commit.response, first, text, seconds, tokens, estimated)
    return list(found.values())


def print_list(found: Sequence[Thought]) -> None:
    """A line for each: number, time, tokens, first line."""
    if not found:
        terminal.note("there is no reasoning yet")
        return
    words = max(terminal.width() - 36, 20)
    rows = [
        (str(at), terminal.short(one.hash), _seconds(one), _tokens(one), terminal.one_line(one.text or HIDDEN, words))
        for at, one in enumerate(found, 1)
    ]
    heading, *lines = terminal.table([("", "commit", "time", "tokens", "reasoning"), *rows], right=(0, 2, 3))
    pen = terminal.pen(sys.stdout)
    terminal.out(pen(heading, "dim"))
    for line in lines:
        terminal.out(line)


def unfold(chat: Chat) -> None:
    """Show the last thought in full, as it was while it came, unless it is on the screen already."""
    if chat.screen.shows_thought:
        return
    found = of(chat.session)
    if not found:
        terminal.note("there is no reasoning yet")
        return
    chat.screen.unfold(found[-1].text)


def print_whole(thought: Thought) -> None:
    """All of one."""
    pen = terminal.pen(sys.stdout)
    tokens = f"{_tokens(thought)} token{'' if thought.tokens == 1 else 's'}" if thought.tokens else ""
    about = ", ".join(part for part in (terminal.short(thought.hash), _seconds(thought), tokens) if part)
    terminal.out(pen(f"[reasoning] {about}", "dim", "cyan"))
    terminal.out(pen(terminal.wrap(thought.text or HIDDEN, 2), "italic"))


def _durations(commits: Iterable[Commit]) -> dict[str, float]:
    """Seconds from what each request answers (the record of a request is stored with its response) to the end of that
    response, by the response's id.
    """
    said, sent, took = 0, 0, {}
    for commit in commits:
        value = surviving(commit.value)
        if isinstance(value, Request):
            sent = said
        elif isinstance(value, Response) and sent:
            took[commit.response] = (commit.time - sent) / 1_000_000
        said = commit.time
    return took


def _seconds(thought: Thought) -> str:
    return f"~{round(thought.seconds)} s" if thought.seconds >= 1 else ""


def _tokens(thought: Thought) -> str:
    return f"{'~' if thought.estimated else ''}{thought.tokens:,}" if thought.tokens else ""
