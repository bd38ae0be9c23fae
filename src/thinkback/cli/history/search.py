"""``search``: what was said and thought, by words, phrases, and what else is known of it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from thinkback.cli import complete, hints, terminal
from thinkback.cli.options import db_option, existing_log, json_option
from thinkback.cli.progress import progress_line
from thinkback.session.places import NOWHERE, Place, places

if TYPE_CHECKING:
    from thinkback.log.protocol import Hit
    from thinkback.session.history.search import Facets
    from thinkback.session.store import SessionStore

_FACETS = 10
"""Values of a facet that are shown."""


@click.command("search", short_help="Search messages and reasoning.")
@click.argument("text", default="")
@click.option("--reasoning", is_flag=True, help="Search only reasoning.")
@click.option("--kind", "kinds", multiple=True, metavar="KIND", help="Find only commits of this kind; repeatable.")
@click.option(
    "--model",
    shell_complete=complete.models,
    default="",
    metavar="NAME",
    help="Find only commits of this model's responses, as requested or served.",
)
@click.option("--tool", default="", metavar="NAME", help="Find only commits of responses that called this tool.")
@click.option(
    "--priority",
    type=click.Choice(("skip", "normal", "important", "pinned")),
    help="Find only commits annotated with this priority.",
)
@click.option("--program", default="", metavar="NAME", help="Find only commits of this program's sessions.")
@click.option("--project", default="", metavar="NAME", help="Find only commits of this project's sessions.")
@click.option(
    "--since", metavar="TIME", help="Find only commits from this time on: 2026-07-01, 2026-07-01T12:30:00Z or 30d, 12h."
)
@click.option("--until", metavar="TIME", help="Find only commits before this time.")
@click.option("--min-tokens", type=click.IntRange(min=0), metavar="N", help="Minimum length in tokens (estimated).")
@click.option("--max-tokens", type=click.IntRange(min=0), metavar="N", help="Maximum length in tokens (estimated).")
@click.option(
    "-n",
    "--limit",
    "limit",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    metavar="N",
    help="Maximum number of results.",
)
@click.option("--facets", "counted", is_flag=True, help="Count the results by program, model, project and day instead.")
@click.option(
    "--open",
    "opened",
    type=click.IntRange(min=1),
    is_flag=False,
    flag_value="1",
    metavar="[N]",
    help="Show the conversation from result N (default: 1) on, in the pager of `thinkback log`.",
)
@click.option(
    "--session", "-s", shell_complete=complete.sessions, default="", metavar="NAME", help="Search only this session."
)
@db_option
@json_option
def search_command(
    text: str,
    reasoning: bool,
    session: str,
    db: str,
    as_json: bool,
    limit: int,
    counted: bool,
    opened: int | None,
    **given: Any,
) -> None:
    """Find the commits that contain all words of TEXT, newest first. Words in double quotes must be adjacent."""
    if opened is not None and (counted or as_json):
        raise click.UsageError("--open shows a conversation: leave out --facets and --json")
    if not (text or reasoning or session or as_json or counted or opened or any(given.values())):
        raise click.UsageError(
            'say what to look for: `thinkback search "code word"`; or narrow it: --reasoning, --since 1d, -s NAME'
        )
    filters = {name: value for name, value in given.items() if value not in (None, "", ())}
    limit = max(limit, opened or 0)
    with existing_log(db) as store:
        if counted:
            _count(store, text, session, as_json, {**filters, "reasoning": reasoning})
            return
        look = store.find_reasoning if reasoning else store.search
        # one more than is shown, to know whether there are more
        with progress_line("filling the index") as progress:
            found = look(text, session=session, progress=progress, limit=limit + 1, **filters)
        where = places(store.log, {each.hit.session for each in found})
        if opened is not None and len(found) >= opened:
            _open(store, found[opened - 1].hit, where)
            return
    hits = [each.hit for each in found]
    if as_json:
        terminal.print_json([{**_as_json(hit), **_place_json(hit, where)} for hit in hits[:limit]])
    else:
        print_hits(hits[:limit], where)
        if hits:
            shown = hints.command("show", terminal.short(hits[0].hash))
            terminal.note(f"{shown} shows the first whole; --open N shows the conversation from result N on")
    if len(hits) > limit:
        terminal.note(f"the newest {limit} are shown, and there are more: --limit {limit * 5} shows up to {limit * 5}")


def _open(store: SessionStore, hit: Hit, where: Mapping[str, Place]) -> None:
    """The conversation from the message that was found on, as ``log`` shows it."""
    from thinkback.model.commits import Head
    from thinkback.session.history.revisions import branch_with
    from thinkback.session.transcripts.printing import pprint

    session, commit = store.log.find_commit(hit.hash, hit.session)
    branch = branch_with(store.log, session, Head(commit.hash, commit.seq))
    line = store.log.read(session, branch=branch) if branch else store.log.read_to(session, commit.hash)
    at = next(
        at
        for at, each in enumerate(line)
        if each.hash == commit.hash or (each.kind == "response" and each.response == commit.response)
    )
    page = terminal.Page()
    place = where.get(session, NOWHERE)
    name = terminal.clean(" ".join(filter(None, (place.session, _titled(place)))))
    page.write(terminal.pen(page)(f"{name}: from commit {terminal.short(line[at].hash)} on", "bold") + "\n")
    pprint(line[at:], "chat", page, line)
    terminal.show(page.getvalue())


def _count(store: SessionStore, text: str, session: str, as_json: bool, filters: Mapping[str, Any]) -> None:
    """How many hits are of each program, model, project and day."""
    from thinkback.session.history.search import facets

    with progress_line("filling the index") as progress:
        found = facets(store.log, text, store.find(session).id if session else "", progress, **filters)
    if as_json:
        terminal.print_json({"hits": found.hits, **found.counts})
    else:
        _print_facets(found)
    if found.has_more:
        terminal.note(f"the newest {found.hits} are counted, and there are more")


def _print_facets(found: Facets) -> None:
    pen = terminal.pen(sys.stdout)
    terminal.out(terminal.plural(found.hits, "result"))
    for facet, counts in found.counts.items():
        terminal.out(pen(facet, "bold"))
        shown = sorted(counts.items(), reverse=True) if facet == "day" else [*counts.items()]
        rows = [
            (terminal.one_line(name or "-", terminal.width() - 14), f"{count:,}") for name, count in shown[:_FACETS]
        ]
        for line in terminal.table(rows, right=(1,)):
            terminal.out(f"  {line}")
        if len(shown) > _FACETS:
            terminal.out(pen(f"  and {len(shown) - _FACETS} more", "dim"))


def print_hits(hits: Sequence[Hit], where: Mapping[str, Place]) -> None:
    """What was found, with an excerpt each, indented below its session and what that is about; ``where`` sessions are
    from, by id.
    """
    pen, last = terminal.pen(sys.stdout), ""
    for hit in hits:
        thought = hit.kind == "reasoning"
        kind = terminal.pad("[reasoning]" if thought else hit.kind, 12)
        place = where.get(hit.session, NOWHERE)
        by = f"  {terminal.clean(hit.model)}" if hit.model else ""
        then = f" -> {terminal.clean(hit.tool)}" if hit.tool else ""
        if hit.session != last:
            heading = ": ".join(filter(None, (f"session {place.session or hit.session}", _titled(place))))
            terminal.out(pen(terminal.one_line(heading, terminal.width()), "bold"))
        last = hit.session
        head = pen(f"{kind}  {terminal.clock(hit.time)}{by}{then}", *(("dim", "cyan") if thought else ("dim",)))
        terminal.out(f"  {pen(terminal.short(hit.hash), 'yellow')}  {head}")
        terminal.out(pen(terminal.wrap(" ".join(hit.excerpt.split()), 4), *(("dim",) if thought else ())))
    if not hits:
        terminal.note("nothing was found")


def _titled(place: Place) -> str:
    """Project and title of a session."""
    return ": ".join(filter(None, (place.project, place.title)))


def _place_json(hit: Hit, where: Mapping[str, Place]) -> dict[str, object]:
    place = where.get(hit.session, NOWHERE)
    return {
        "session": place.session or hit.session,
        "title": place.title or None,
        "program": place.program,
        "project": place.project or None,
    }


def _as_json(hit: Hit) -> dict[str, object]:
    return {
        "hash": hit.hash,
        "kind": hit.kind,
        "time": terminal.iso(hit.time),
        "model": hit.model or None,
        "tool": hit.tool or None,
        "tokens": hit.tokens,
        "excerpt": hit.excerpt,
    }
