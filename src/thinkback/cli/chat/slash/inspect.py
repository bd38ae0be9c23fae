"""``/why``, ``/think``, ``/usage`` and ``/search``: what was sent, thought, used and said."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click

from thinkback.cli import hints, terminal
from thinkback.cli.chat import thoughts
from thinkback.cli.chat.drawing import calls as drawn
from thinkback.cli.chat.progress import working
from thinkback.cli.chat.slash.row import Slash, words
from thinkback.model.blocks import ToolCall, ToolResult

if TYPE_CHECKING:
    from thinkback.cli.chat.chat import Chat

WHY = "why [HASH | next]"
USAGE = "usage [model | turn | step]"
THINK = "think [N | last]"
LAST = "last"
CALLS = "calls [N]"
SEARCH = "search [--reasoning] [--here] TEXT"
_BY = ("model", "turn", "step")
_LIMIT = 20


def why(chat: Chat, rest: str) -> None:
    """The decisions of the last request, of the next one, or of the one that brought a commit."""
    from thinkback.cli.history import why as shown

    named = words(rest, WHY, most=1)
    session = chat.session
    if named and named[0] != "next":
        explained = session.why(named[0])
        with terminal.paged():
            shown.print_explanation(session.name, explained)
        return
    of_next = bool(named)
    plan = session.explain(next=of_next)
    with terminal.paged():
        shown.print_plan(session.name, "next request" if of_next else "last request", plan, is_next=of_next)


def think(chat: Chat, rest: str) -> None:
    """The reasoning of this session: a line for each, or one in full."""
    named = words(rest, THINK, most=1)
    found = thoughts.of(chat.session)
    if named == [LAST]:
        thoughts.unfold(chat)
        return
    if not named:
        thoughts.print_list(found)
        return
    if not named[0].isdecimal() or not 1 <= int(named[0]) <= len(found):
        allowed = f"last, or a number from 1 to {len(found)}" if found else "nothing yet: there is no reasoning"
        raise click.UsageError(f"/think {named[0]}: allowed is {allowed}")
    thoughts.print_whole(found[int(named[0]) - 1])


def calls(chat: Chat, rest: str) -> None:
    """The calls of tools: a line for each, or one with its arguments and its result as they are."""
    named = words(rest, CALLS, most=1)
    found = _calls(chat)
    if not named:
        for at, (call, result) in enumerate(found, 1):
            said = drawn.words(call.name, call.arguments)
            came = drawn.ended(said, result.content, failed=result.is_error) if result is not None else said
            terminal.out(f"{at}  {terminal.one_line(came, terminal.width() - 6)}")
        if not found:
            terminal.note("no tool was called yet")
        return
    if not named[0].isdecimal() or not 1 <= int(named[0]) <= len(found):
        allowed = f"a number from 1 to {len(found)}" if found else "nothing yet: no tool was called"
        raise click.UsageError(f"/calls {named[0]}: allowed is {allowed}")
    call, result = found[int(named[0]) - 1]
    pen = terminal.pen(sys.stdout)
    with terminal.paged():
        terminal.out(pen(terminal.clean(f"{call.name} {call.arguments}"), "bold"))
        terminal.out(terminal.wrap(result.content if result is not None else "(no result)", 2))


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
    from thinkback.session.places import places

    options = {"--reasoning", "--here"}
    given = rest.split()
    wanted = options & set(given)
    # quotation marks belong to the search's own language, so that this line is not taken apart by the shell's rules
    text = " ".join(word for word in given if word not in options)
    if not text:
        raise click.UsageError(f"usage: /{SEARCH}")
    look = chat.store.find_reasoning if "--reasoning" in wanted else chat.store.search
    with working("searching"):
        found = look(text, session=chat.session.id if "--here" in wanted else "", limit=_LIMIT + 1)
    print_hits([one.hit for one in found[:_LIMIT]], places(chat.store.log))
    if len(found) > _LIMIT:
        shown = hints.command("search --limit 100", text)
        if "--here" in wanted:
            shown = hints.command("search --limit 100", text, session=chat.session.name)
        if "--reasoning" in wanted:
            shown = shown.replace(" search", " search --reasoning", 1)
        terminal.note(f"the newest {_LIMIT} are shown, and there are more: {shown} (in a shell) shows them")


def _hashes(chat: Chat, before: Sequence[str]) -> Iterable[str]:
    """The commits of this session that can be explained, the newest first."""
    if before:
        return ()
    kinds = ("assistant", "tool_call", "tool_result", "response", "request")
    return ("next", *(terminal.short(commit.hash) for commit in reversed(chat.session.log(kinds=kinds))))


def _numbers(chat: Chat, before: Sequence[str]) -> Iterable[str]:
    return () if before else [LAST, *(str(at) for at in range(1, len(thoughts.of(chat.session)) + 1))]


def _call_numbers(chat: Chat, before: Sequence[str]) -> Iterable[str]:
    return () if before else [str(at) for at in range(1, len(_calls(chat)) + 1)]


def _calls(chat: Chat) -> list[tuple[ToolCall, ToolResult | None]]:
    """The calls of tools on the current branch, each with what came of it."""
    found: dict[str, tuple[ToolCall, ToolResult | None]] = {}
    done: list[tuple[ToolCall, ToolResult | None]] = []
    for commit in chat.session.log(kinds=("tool_call", "tool_result")):
        match commit.value:
            case ToolCall() as call:
                found[call.id] = (call, None)
            case ToolResult() as result if result.id in found:
                done.append((found.pop(result.id)[0], result))
            case _:
                pass
    return [*done, *found.values()]


def _by(_chat: Chat, before: Sequence[str]) -> Iterable[str]:
    return () if before else _BY


def _search_options(_chat: Chat, before: Sequence[str]) -> Iterable[str]:
    return [option for option in ("--reasoning", "--here") if option not in before]


ROWS = (
    Slash("why", WHY, "Explain which earlier reasoning was sent back, and why.", why, _hashes),
    Slash(
        "think",
        THINK,
        "List the reasoning of this session, or show one block in full; Ctrl-O shows the last.",
        think,
        _numbers,
    ),
    Slash("calls", CALLS, "List the tool calls, or show one with its arguments and result.", calls, _call_numbers),
    Slash("usage", USAGE, "Show the tokens used so far, and the size of the next request.", usage, _by),
    Slash("search", SEARCH, "Search messages and reasoning of all sessions, or of this one.", search, _search_options),
)
