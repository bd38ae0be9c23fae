"""``search``: what was said and thought, by words, phrases, and what else is known of it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from thinkback.cli import complete, terminal
from thinkback.cli.options import db_option, existing_log, json_option
from thinkback.cli.progress import progress_line

if TYPE_CHECKING:
    from thinkback.log.protocol import Hit


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
@click.option(
    "--since", metavar="TIME", help="Find only commits from this time on: 2026-07-01 or 2026-07-01T12:30:00Z."
)
@click.option("--until", metavar="TIME", help="Find only commits before this time.")
@click.option("--min-tokens", type=click.IntRange(min=0), metavar="N", help="Minimum length in tokens (estimated).")
@click.option("--max-tokens", type=click.IntRange(min=0), metavar="N", help="Maximum length in tokens (estimated).")
@click.option(
    "--limit", type=click.IntRange(min=1), default=20, show_default=True, metavar="N", help="Maximum number of results."
)
@click.option(
    "--session", "-s", shell_complete=complete.sessions, default="", metavar="NAME", help="Search only this session."
)
@db_option
@json_option
def search_command(text: str, reasoning: bool, session: str, db: str, as_json: bool, limit: int, **given: Any) -> None:
    """Find the commits that contain all words of TEXT, newest first. Words in double quotes must be adjacent."""
    filters = {name: value for name, value in given.items() if value not in (None, "", ())}
    with existing_log(db) as store:
        names = {info.id: info.name for info in store.sessions()}
        look = store.find_reasoning if reasoning else store.search
        # one more than is shown, to know whether there are more
        with progress_line("filling the index") as progress:
            hits = [each.hit for each in look(text, session=session, progress=progress, limit=limit + 1, **filters)]
    if as_json:
        shown = hits[:limit]
        terminal.print_json([{**_as_json(hit), "session": names.get(hit.session, hit.session)} for hit in shown])
    else:
        print_hits(hits[:limit], names)
    if len(hits) > limit:
        terminal.note(f"the newest {limit} are shown, and there are more: --limit {limit * 5} shows up to {limit * 5}")


def print_hits(hits: Sequence[Hit], names: Mapping[str, str]) -> None:
    """What was found, with an excerpt each; ``names`` are those of sessions by id."""
    pen = terminal.pen(sys.stdout)
    for hit in hits:
        thought = hit.kind == "reasoning"
        kind = terminal.pad("[reasoning]" if thought else hit.kind, 12)
        place = terminal.clean(names.get(hit.session, hit.session))
        by = f"  {terminal.clean(hit.model)}" if hit.model else ""
        then = f" -> {terminal.clean(hit.tool)}" if hit.tool else ""
        head = f"{kind}  {terminal.clock(hit.time)}  {place}{by}{then}"
        terminal.out(
            f"{pen(terminal.short(hit.hash), 'yellow')}  {pen(head, *(('dim', 'cyan') if thought else ('dim',)))}"
        )
        terminal.out(pen(terminal.wrap(" ".join(hit.excerpt.split()), 2), *(("dim",) if thought else ())))
    if not hits:
        terminal.note("nothing was found")


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
