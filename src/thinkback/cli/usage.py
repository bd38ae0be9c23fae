"""``usage``: tokens by step, turn, session and model, and what the next request would carry."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from thinkback.cli import terminal
from thinkback.cli.branching import open_line
from thinkback.cli.options import db_option, existing_log, json_option

if TYPE_CHECKING:
    from collections.abc import Iterable

    from thinkback.session.session import Session
    from thinkback.turn.spending import Spending
    from thinkback.turn.usage import TokenUse

_COLUMNS = ("input", "cached", "output", "reasoning")


@click.command("usage", short_help="Tokens by step, turn, session and model.")
@click.argument("session", default="")
@click.option("--by", type=click.Choice(("model", "turn", "step", "session")), default="model", help="A line for each.")
@click.option("--family", is_flag=True, help="With all sessions that forked from one another.")
@db_option
@json_option
def usage_command(session: str, by: str, family: bool, db: str, as_json: bool) -> None:
    """Show the tokens that SESSION used, in one meaning for every provider; with --by session, of the whole log.

    With the tokens that are stored, those of the next request, and the budget of reasoning where one is set.
    """
    if by == "session":
        with existing_log(db) as store:
            used = store.usage()
        rows = [(name, spent.use) for name, spent in used.sessions.items()]
        _show("session", rows, used.total, [], as_json, {})
        return
    with open_line(db, session) as found:
        show_usage(found, by, family, as_json)


def show_usage(session: Session, by: str = "model", family: bool = False, as_json: bool = False) -> None:
    """What ``session``, or its family, used ``by`` model, turn or step, and what its next request would carry."""
    usage = session.usage
    total = usage.family() if family else usage.total()
    rows = {
        "model": lambda: list(total.models.items()),
        "turn": lambda: [(str(turn.turn), turn.use) for turn in usage.turns()],
        "step": lambda: [(step.commit[:8], step.use) for step in usage.steps()],
    }[by]()
    budget = usage.budget()
    context = usage.context() if session._place.is_complete else None
    notes: list[str] = []
    facts: dict[str, object] = {}
    if context is not None:
        limit = f" of {context.limit:,}" if context.limit else ""
        notes.append(f"context: {context.effective:,} effective{limit}, {context.raw:,} stored (estimated)")
        facts["context"] = {"raw": context.raw, "effective": context.effective, "limit": context.limit or None}
    if budget.limit is not None:
        notes.append(f"reasoning: {budget.spent:,} of {budget.limit:,}, then {budget.action}")
        facts["budget"] = {"spent": budget.spent, "limit": budget.limit, "action": budget.action}
    _show(by, rows, total, notes, as_json, facts)


def _show(
    by: str,
    rows: Iterable[tuple[str, TokenUse]],
    total: Spending,
    notes: Iterable[str],
    as_json: bool,
    facts: dict[str, object],
) -> None:
    if as_json:
        listed = [{by: name, **_as_json(use)} for name, use in rows]
        terminal.print_json({"total": {"steps": total.steps, **_as_json(total.use)}, f"by_{by}": listed, **facts})
        return
    pen = terminal.pen(sys.stdout)
    lines = [
        (by, *_COLUMNS),
        *((terminal.clean(name), *_cells(use)) for name, use in rows),
        ("all", *_cells(total.use)),
    ]
    heading, *others = terminal.table(lines, right=range(1, len(_COLUMNS) + 1))
    terminal.out(pen(heading, "bold"))
    for line in others:
        terminal.out(line)
    for note in notes:
        terminal.out(pen(note, "dim"))


def _cells(use: TokenUse) -> list[str]:
    counts = [getattr(use, name) for name in _COLUMNS]
    told = ["-" if count is None else f"{count:,}" for count in counts]
    if use.estimated and use.reasoning is not None:
        told[-1] = f"~{told[-1]}"
    return told


def _as_json(use: TokenUse) -> dict[str, Any]:
    return {**{name: getattr(use, name) for name in _COLUMNS}, "estimated": use.estimated}
