"""``/why``, ``/think``, ``/usage`` and ``/search``: what was sent, thought, used and said."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click

from thinkback.cli import terminal
from thinkback.cli.chat import thoughts
from thinkback.cli.chat.progress import working
from thinkback.cli.chat.slash.row import Slash, words

if TYPE_CHECKING:
    from thinkback.cli.chat.chat import Chat

WHY = "why [HASH | next]"
USAGE = "usage [model | turn | step]"
SEARCH = "search [--reasoning] [--here] TEXT"
_BY = ("model", "turn", "step")
_LIMIT = 20


def why(chat: Chat, rest: str) -> None:
    """The decisions of the last request, of the next one, or of the one that brought a commit."""
    from thinkback.cli.history import why as shown

    named = words(rest, WHY, most=1)
    session = chat.session
    if named and named[0] != "next":
        shown.print_explanation(session.name, session.why(named[0]))
        return
    of_next = bool(named)
    shown.print_plan(session.name, "next request" if of_next else "last request", session.explain(next=of_next))


def think(chat: Chat, rest: str) -> None:
    """The reasoning of this session: a line for each, or one in full."""
    named = words(rest, "think [N]", most=1)
    found = thoughts.of(chat.session)
    if not named:
        thoughts.print_list(found)
        return
    if not named[0].isdecimal() or not 1 <= int(named[0]) <= len(found):
        allowed = f"a number from 1 to {len(found)}" if found else "nothing yet: there is no reasoning"
        raise click.UsageError(f"/think {named[0]}: allowed is {allowed}")
    thoughts.print_whole(found[int(named[0]) - 1])


def usage(chat: Chat, rest: str) -> None:
    """Tokens, and what the next request would carry."""
    from thinkback.cli.history.usage import show_usage

    by = (*words(rest, USAGE, most=1), "model")[0]
    if by not in _BY:
        raise click.UsageError(f"/usage {by}: allowed are {', '.join(_BY)}")
    show_usage(chat.session, by)


def search(chat: Chat, rest: str) -> None:
    """What was said and thought, in all sessions or here."""
    from thinkback.cli.history.search import print_hits

    options = {"--reasoning", "--here"}
    given = rest.split()
    wanted = options & set(given)
    # quotation marks belong to the search's own language, so that this line is not taken apart by the shell's rules
    text = " ".join(word for word in given if word not in options)
    if not text:
        raise click.UsageError(f"usage: /{SEARCH}")
    names = {info.id: info.name for info in chat.store.sessions()}
    look = chat.store.find_reasoning if "--reasoning" in wanted else chat.store.search
    with working("searching"):
        found = look(text, session=chat.session.id if "--here" in wanted else "", limit=_LIMIT + 1)
    print_hits([one.hit for one in found[:_LIMIT]], names)
    if len(found) > _LIMIT:
        terminal.note(f"the newest {_LIMIT} are shown, and there are more: `thinkback search` shows them with --limit")


def _hashes(chat: Chat, before: Sequence[str]) -> Iterable[str]:
    """The commits of this session that can be explained, the newest first."""
    if before:
        return ()
    kinds = ("assistant", "tool_call", "tool_result", "response", "request")
    return ("next", *(terminal.short(commit.hash) for commit in reversed(chat.session.log(kinds=kinds))))


def _numbers(chat: Chat, before: Sequence[str]) -> Iterable[str]:
    return () if before else [str(at) for at in range(1, len(thoughts.of(chat.session)) + 1)]


def _by(_chat: Chat, before: Sequence[str]) -> Iterable[str]:
    return () if before else _BY


def _search_options(_chat: Chat, before: Sequence[str]) -> Iterable[str]:
    return [option for option in ("--reasoning", "--here") if option not in before]


ROWS = (
    Slash("why", WHY, "What was sent back of earlier reasoning, block by block, and why.", why, _hashes),
    Slash("think", "think [N]", "List the reasoning of this session, or show number N in full.", think, _numbers),
    Slash("usage", USAGE, "Tokens so far, and what the next request would carry.", usage, _by),
    Slash("search", SEARCH, "Find what was said and thought in all sessions, or here.", search, _search_options),
)
