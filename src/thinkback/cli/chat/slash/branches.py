"""``/branch``, ``/switch``, ``/fork``, ``/retry`` and ``/edit``: other ways on from here. No history is lost by any."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count
from typing import TYPE_CHECKING

import click

from thinkback.cli import exits, terminal
from thinkback.cli.chat import resume, said, turns
from thinkback.cli.chat.slash.row import Slash, words
from thinkback.cli.history.branching import beginning, print_branches, turns_of
from thinkback.errors import NotFoundError
from thinkback.model import canonical
from thinkback.model.blocks import Text, Unknown
from thinkback.model.commits import Message
from thinkback.model.curation import curate

if TYPE_CHECKING:
    from thinkback.cli.chat.chat import Chat
    from thinkback.model.commits import Commit
    from thinkback.session.requests import Prompt

BRANCH = "branch [NAME [COMMIT]] | /branch --delete NAME"


def branch(chat: Chat, rest: str) -> None:
    """List the branches, create one and switch to it, or delete one."""
    branches = chat.session.branches
    match words(rest, BRANCH, most=2):
        case ["--delete", name]:
            branches.delete(name)
        case ["--delete"]:
            raise click.UsageError(f"usage: /{BRANCH}")
        case [name, *at]:
            before, current = chat.session.log(), branches.current
            made = branches.branch(name, *at, switch=True)
            terminal.note(f"switched to {beginning(made, current, before)}")
        case _:
            pass
    listed = branches.list()
    print_branches(listed, branches.current, turns_of(chat.session, listed))


def switch(chat: Chat, rest: str) -> None:
    """Go on with another branch."""
    (name,) = words(rest, "switch NAME", 1, 1)
    chat.session.branches.switch(name)
    resume.show(chat, 1)


def fork(chat: Chat, rest: str) -> None:
    """A session of its own that begins as this one; the chat goes on there."""
    named = words(rest, "fork [NAME]", most=1)
    before = chat.session.name
    chat.session = chat.session.branches.fork(named[0] if named else None)
    terminal.out(terminal.clean(f"session {chat.session.name}, a copy of {before}; /resume {before} goes back"))


def retry(chat: Chat, rest: str) -> None:
    """Send the last message again, on a new branch."""
    words(rest, "retry", most=0)
    if _is_news(chat):
        return
    commit, message = _last_message(chat)
    _ask_beside(chat, "retry", commit, _prompt(message))


def undo(chat: Chat, rest: str) -> None:
    """Go on from before the last message, on a new branch."""
    words(rest, "undo", most=0)
    if _is_news(chat):
        return
    commit, _ = _last_message(chat)
    _go_beside(chat, "undo", commit)


def edit(chat: Chat, rest: str) -> None:
    """Change the last message and ask that, on a new branch."""
    if _is_news(chat):
        return
    commit, message = _last_message(chat)
    if not rest and not chat.reader.is_live:
        raise click.UsageError("usage: /edit TEXT")
    text = rest or chat.reader.ask("edit> ", message.text)
    if not text.strip():
        raise click.UsageError("the message is empty; nothing was changed")
    _ask_beside(chat, "edit", commit, text)


def _is_news(chat: Chat) -> bool:
    """Whether the last message may be one that the person has not seen: then it is shown, and nothing is done."""
    if not chat.news.tell(chat):
        return False
    chat.code = exits.BUSY
    terminal.note("nothing was sent: repeat it to continue from here")
    return True


def _last_message(chat: Chat) -> tuple[Commit, Message]:
    commits = chat.session.log()
    curation = curate(commits)
    for commit in reversed(said.messages(commits, curation)):
        message = curation.value(commit)
        if isinstance(message, Message):
            return commit, message
    raise NotFoundError("there is no message yet", next_actions=("send a message first",))


def _prompt(message: Message) -> Prompt:
    """The message as it can be asked again, with its pictures."""
    if not message.parts:
        return message.text
    return [
        part.text if isinstance(part, Text) else canonical.decode(part.wire) if isinstance(part, Unknown) else part
        for part in message.parts
    ]


def _ask_beside(chat: Chat, purpose: str, commit: Commit, prompt: Prompt) -> None:
    _go_beside(chat, purpose, commit)
    turns.ask(chat, prompt)


def _go_beside(chat: Chat, purpose: str, commit: Commit) -> None:
    """Stand before ``commit``, on a branch named for the ``purpose``."""
    branches = chat.session.branches
    taken = {one.name for one in branches.list()}
    before = branches.current
    name = next(name for at in count(1) if (name := f"{purpose}-{at}") not in taken)
    branches.before(commit.hash, name)
    terminal.note(f"branch {name}; /switch {before or '-'} goes back")


def _names(chat: Chat, before: Sequence[str]) -> Iterable[str]:
    names = [one.name for one in chat.session.branches.list()]
    match before:
        case []:
            return ("--delete", *names)
        case ["--delete"]:
            return names
        case [_]:
            return [terminal.short(commit.hash) for commit in reversed(chat.session.log(kinds=("user", "assistant")))]
    return ()


def _others(chat: Chat, before: Sequence[str]) -> Iterable[str]:
    branches = chat.session.branches
    return () if before else [one.name for one in branches.list() if one.name != branches.current]


ROWS = (
    Slash("branch", BRANCH, "List the branches, create one and switch to it, or delete one.", branch, _names),
    Slash("switch", "switch NAME", "Switch to another branch; - is the previous one.", switch, _others),
    Slash("fork", "fork [NAME]", "Continue in a new session that is a copy of this one.", fork),
    Slash("retry", "retry", "Send the last message again, on a new branch.", retry),
    Slash("undo", "undo", "Remove the last message and its answer, on a new branch.", undo),
    Slash("edit", "edit [TEXT]", "Change the last message and send it again, on a new branch.", edit),
)
