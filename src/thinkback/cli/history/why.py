"""``why``: what was done with each block of earlier reasoning in the last request, or will be in the next."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

import click

from thinkback.cli import complete, hints, terminal
from thinkback.cli.decisions import as_json as plan_json
from thinkback.cli.decisions import decision_lines, opening, target_lines
from thinkback.cli.history.log import note_others, place_of
from thinkback.cli.options import (
    DIALECTS,
    chosen,
    db_option,
    existing_log,
    json_option,
    opened,
    place_in,
    place_options,
)
from thinkback.errors import NotFoundError
from thinkback.session.destination import Destination, check_destination, destination_of
from thinkback.session.transcripts.wording import first_words

if TYPE_CHECKING:
    from thinkback.log.protocol import SessionInfo
    from thinkback.model.commits import Commit
    from thinkback.session.history.explaining import Explanation
    from thinkback.session.store import SessionStore
    from thinkback.turn.plan import Plan

_HASH = re.compile(r"[0-9a-fA-F]{4,64}")

_HELP = f"""\
Show for each block of earlier reasoning whether it was sent back, by which rule, and why.

NAME is a session (default: the one used last) or the beginning of a commit's hash. A session shows its current branch,
which is the newest conversation of a program that ran several times under one name. For a tool call, an answer or a
result, the reasoning that led to it is shown too. The request is recomputed from its record and checked by its digest.
The output includes the provider's reports, placeholders, reasoning that the provider keeps itself, and the effect of
each setting. With --next, endpoint and model default to those of the last request.

{DIALECTS}
"""


@click.command("why", short_help="Explain which reasoning was sent back, and why.", help=_HELP)
@click.argument("name", required=False, shell_complete=complete.sessions)
@click.option(
    "--session",
    "-s",
    shell_complete=complete.sessions,
    metavar="NAME",
    default="",
    help="Same as NAME, for a session.",
)
@click.option(
    "--branch",
    default="",
    metavar="BRANCH",
    shell_complete=complete.branches,
    help="Explain the last request of this branch instead of the current one.",
)
@click.option("--next", "of_next", is_flag=True, help="Explain the next request instead of the last one.")
@place_options
@db_option
@json_option
def why_command(
    name: str | None, session: str, branch: str, of_next: bool, as_json: bool, db: str, **given: Any
) -> None:
    """Explain and print."""
    if name and session:
        raise click.UsageError("NAME and --session are both given: give one of them")
    if branch and of_next:
        raise click.UsageError(f"the next request continues the current branch: `thinkback switch {branch}` changes it")
    name = name or session
    from thinkback.session.history.branches import unshown_branches
    from thinkback.session.requests import rebuild

    with existing_log(db) as store:
        found = _commit(store, name)
        if found is not None:
            owner, commit = found
            info = store.find(owner)
            session = info.name if as_json else _place(store, info)
            _print(session, opened(store, info.name, Destination()).why(commit.hash), as_json)
            return
        info = chosen(store, name)
        place = place_in(given)
        if of_next:
            place = destination_of(store, info, store.commits(info.id), place)
            check_destination(place, store.rulebook)
        line = store.log.read(info.id, branch=branch or info.branch)
        try:
            if branch:
                plan = rebuild(line)
            else:
                plan = opened(store, info.name, place if of_next else Destination()).explain(next=of_next)
        except NotFoundError as error:
            raise hints.for_shell(error, info.name) from None
        session, others = _place(store, info), unshown_branches(store.log, info.id, line)
    which = "next" if of_next else "last"
    if as_json:
        terminal.print_json({"session": info.name, "request": which, **plan_json(plan)})
        return
    of = f" of branch {terminal.clean(branch)}" if branch else ""
    print_plan(session, f"{which} request{of}", plan, is_next=of_next)
    note_others("why", info.name, others)


def _place(store: SessionStore, info: SessionInfo) -> str:
    return terminal.clean(place_of(info, store.log.summaries([info.id]).get(info.id)))


def _commit(store: SessionStore, name: str | None) -> tuple[str, Commit] | None:
    """The commit that ``name`` begins the hash of, where no session is called so."""
    if not name or store.log.find_session(name) is not None or not _HASH.fullmatch(name):
        return None
    return store.log.find_commit(name)


def _print(session: str, found: Explanation, as_json: bool) -> None:
    if as_json:
        led = [
            {"hash": each.hash, "text": first_words(each.value), "edited": found.edited.get(each.hash)}
            for each in found.reasoning
        ]
        plan = plan_json(found.plan) if found.plan is not None else {}
        told = {"session": session, "commit": found.commit.hash, "kind": found.commit.kind, "reasoning": led}
        edited = found.edited.get(found.commit.hash)
        terminal.print_json({**told, "edited": edited, "unknown": found.unknown or None, **plan})
        return
    print_explanation(session, found)


def print_explanation(session: str, found: Explanation) -> None:
    """What led to a commit, and what the request that brought it carried."""
    pen = terminal.pen(sys.stdout)
    commit = found.commit
    terminal.out(
        pen(f"{commit.kind} {terminal.short(commit.hash)}: ", "bold") + terminal.one_line(first_words(commit.value), 60)
    )
    if commit.hash in found.edited:
        terminal.out(pen(found.edited[commit.hash], "dim"))
    for thought in found.reasoning:
        terminal.out(pen(f"[reasoning] {terminal.short(thought.hash)}", "dim", "cyan"))
        terminal.out(pen(terminal.wrap(first_words(thought.value), 2), "dim"))
        if thought.hash in found.edited:
            terminal.out(pen(f"  {found.edited[thought.hash]}", "dim"))
    if found.blame is not None and not found.reasoning:
        terminal.out(pen("no reasoning led to it", "dim"))
    if found.plan is not None:
        print_plan(session, "the request that brought it", found.plan)
    else:
        terminal.out(pen(terminal.clean(found.unknown), "dim"))


def print_plan(session: str, which: str, plan: Plan, *, is_next: bool = False) -> None:
    """What one request carries of earlier reasoning, and why: in sentences, then where it goes and each decision."""
    pen = terminal.pen(sys.stdout)
    target = plan.target
    messages = terminal.plural(len(plan.messages), "message")
    terminal.out(pen(f"session {session}, {which}: {target.endpoint.id} {target.model}, {messages}", "bold"))
    terminal.out(terminal.wrap(opening(plan, is_next=is_next)))
    terminal.out()
    for line in target_lines(target):
        terminal.out(pen(line, "dim"))
    for line in decision_lines(plan, pen):
        terminal.out(line)
    if chosen := plan.remarks.get("chosen"):
        terminal.out(terminal.clean(chosen))
    if left_out := plan.remarks.get("left_out"):
        terminal.out(pen(f"left out or changed: {terminal.clean(left_out)}", "yellow"))
    missing = plan.remarks.get("not_found")
    if missing:
        terminal.out(pen(f"reasoning that was not found, by message: {terminal.clean(missing)}", "yellow"))
        if "ambiguous" in missing:
            terminal.out("  several answers look the same here; the conversation before them is none that was recorded")
