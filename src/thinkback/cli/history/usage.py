"""``usage``: tokens by step, turn, session and model, their cost, what the next request would carry, and hints."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import click

from thinkback.cli import terminal
from thinkback.cli.decisions import size_line
from thinkback.cli.options import db_option, existing_log, json_option, open_line, session_argument
from thinkback.errors import NotFoundError, RuleFileError, SettingError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thinkback.observe.cost import Cost
    from thinkback.session.session import Session
    from thinkback.session.usage import Facet, SessionUsage
    from thinkback.turn.spending import StepUse
    from thinkback.turn.usage import TokenUse

_COLUMNS = ("input", "cached", "output", "reasoning")
_WHOLE = ("program", "project", "day", "session")
_BARS = 30
"""Lines of a chart."""


class Row(NamedTuple):
    """A line of the table; ``cost`` is ``None`` where it is not asked for."""

    name: str
    use: TokenUse
    steps: int = 0
    cost: Cost | None = None


@click.command("usage", short_help="Show tokens and cost by step, turn, session and model.")
@session_argument
@click.option(
    "--by",
    type=click.Choice(("model", "turn", "step", *_WHOLE)),
    default="model",
    help="Print a line for each; program, project, day and session cover the whole log.",
)
@click.option("--all", "everything", is_flag=True, help="Cover the whole log, including imported sessions.")
@click.option("--family", is_flag=True, help="Include all sessions of the same family of forks.")
@click.option(
    "--since", metavar="TIME", default="", help="Cover the whole log since a date or for a period (30d, 12h)."
)
@click.option("--program", metavar="NAME", default="", help="Cover only what this program requested.")
@click.option("--project", metavar="NAME", default="", help="Cover only this project.")
@db_option
@json_option
def usage_command(
    session: str,
    by: str,
    everything: bool,
    family: bool,
    since: str,
    program: str,
    project: str,
    db: str,
    as_json: bool,
) -> None:
    """Show the tokens that SESSION (default: the session used last) or the whole log (--all) used, counted alike for
    every provider.

    Also shown: the cost, if the provider reports it or a price is known (your own prices: prices.toml in the
    configuration directory), the stored tokens, the tokens of the next request, and the reasoning budget if one is set.
    For the whole log, a chart shows the output and the reasoning in it.
    """
    if by in ("turn", "step") and (everything or since or program or project):
        raise click.UsageError(f"--by {by} is of one session: leave out --all, --since, --program and --project")
    if everything or since or program or project or by in _WHOLE:
        if session or family:
            raise click.UsageError("this is of the whole log: leave out SESSION and --family")
        from thinkback.drive.clock import now
        from thinkback.session.times import moment

        with existing_log(db) as store:
            used = store.usage()
        _show_log(used.by(cast("Facet", by), moment(since or None, now()) or 0, program, project), by, as_json)
        return
    with open_line(db, session) as found:
        if not session and not as_json:
            terminal.note(f"session {found.name}, the one used last; --all covers the whole log")
        show_usage(found, by, family, as_json)


def _show_log(found: dict[str, list[StepUse]], by: str, as_json: bool) -> None:
    """What the whole log used, a line for each, with a chart where there are several."""
    from thinkback.session.observing import costs
    from thinkback.turn.spending import spending

    def row(name: str, steps: list[StepUse]) -> Row:
        return Row(name, spending(steps).use, len(steps), costs(steps))

    rows = [row(name or "-", steps) for name, steps in found.items()]
    _show(by, rows, row("all", [step for steps in found.values() for step in steps]), [], as_json, {})
    if not as_json and len(rows) > 1:
        _draw(rows[-_BARS:] if by == "day" else rows[:_BARS])


def _draw(rows: Sequence[Row]) -> None:
    """A bar for each row as long as its output: the reasoning in it first, then the rest."""
    from thinkback.cli.chat.status import short

    pen, width = terminal.pen(sys.stdout), terminal.width()
    outputs = [row.use.output or 0 for row in rows]
    labels = [terminal.one_line(row.name, width // 3) for row in rows]
    figures = [f"{short(output)} {_share(row.use):>4}" for row, output in zip(rows, outputs, strict=True)]
    names, tail = max(map(terminal.columns_of, labels)), max(map(len, figures))
    room, most = max(width - names - tail - 4, 1), max(*outputs, 1)
    terminal.out()
    terminal.out(pen("output: # reasoning, = the rest", "bold"))
    for row, label, figure, output in zip(rows, labels, figures, outputs, strict=True):
        long = -(-output * room // most)
        thought = min(round(long * min(row.use.reasoning or 0, output) / output), long) if output else 0
        bar = "#" * thought + "=" * (long - thought)
        terminal.out(f"{terminal.pad(label, names)}  {bar:{room}}  {figure:>{tail}}")


def _share(use: TokenUse) -> str:
    """How much of the output was reasoning."""
    share = _reasoned(use)
    return "" if share is None else f"{share:.0%}"


def _reasoned(use: TokenUse) -> float | None:
    return min((use.reasoning or 0) / use.output, 1) if use.output else None


def show_usage(session: Session, by: str = "model", family: bool = False, as_json: bool = False) -> None:
    """What ``session``, or its family, used ``by`` model, turn or step, and what its next request would carry."""
    usage = session.usage
    counted, delegated = usage.counted(family=family), [] if family else usage.delegated()
    rows = [Row(name, use, len(steps), usage.cost(steps)) for name, use, steps in _rows(usage, by, counted)]
    all_of_it = _sum(usage, "all", [*counted, *delegated])
    try:
        notes, facts = _facts(session)
    except (NotFoundError, RuleFileError, SettingError) as error:  # what was used is known all the same
        notes, facts = [error.message], {}
    if delegated:
        others = _sum(usage, "sub-agents", delegated)
        facts["sub_agents"] = {"steps": others.steps, **_as_json(others)}
        rows += [] if as_json else [others]
    _show(by, rows, all_of_it, notes, as_json, facts)


def _sum(usage: SessionUsage, name: str, steps: Sequence[StepUse]) -> Row:
    from thinkback.turn.spending import spending

    total = spending(steps)
    return Row(name, total.use, total.steps, usage.cost(steps))


def _facts(session: Session) -> tuple[list[str], dict[str, object]]:
    """What the next request would carry, what is left of the budget, and hints: for people, and for programs."""
    usage = session.usage
    budget = usage.budget()
    context = usage.context() if session.conversation.configure().place.is_complete else None
    notes: list[str] = []
    facts: dict[str, object] = {"session": session.name}
    if context is not None:
        notes.append("the table: all requests so far, as the provider counted them (~: estimated)")
        notes.append(size_line(context, "size of the next request"))
        facts["context"] = {"raw": context.raw, "effective": context.effective, "limit": context.limit or None}
    if budget.limit is not None:
        notes.append(f"reasoning: {budget.spent:,} of {budget.limit:,}, then {budget.action}")
        facts["budget"] = {"spent": budget.spent, "limit": budget.limit, "action": budget.action}
    hints = usage.hints()
    for hint in hints:
        notes += [f"hint: {hint.text}", *(f"  - {action}" for action in hint.next_actions)]
    facts["hints"] = [{"kind": hint.kind, "text": hint.text, "next_actions": hint.next_actions} for hint in hints]
    return notes, facts


def _rows(usage: SessionUsage, by: str, counted: Sequence[StepUse]) -> list[tuple[str, TokenUse, Sequence[StepUse]]]:
    from thinkback.turn.spending import spending

    if by == "turn":
        return [(str(turn.turn), turn.use, turn.steps) for turn in usage.turns()]
    if by == "step":
        return [(step.commit[:8], step.use, [step]) for step in usage.steps()]
    models = spending(counted).models
    return [(model, use, [step for step in counted if step.model == model]) for model, use in models.items()]


def _show(
    by: str, rows: Sequence[Row], total: Row, notes: Sequence[str], as_json: bool, facts: dict[str, object]
) -> None:
    if as_json:
        listed = [{by: row.name, **_as_json(row)} for row in rows]
        terminal.print_json({"total": {"steps": total.steps, **_as_json(total)}, f"by_{by}": listed, **facts})
        return
    pen = terminal.pen(sys.stdout)
    has_cost = total.cost is not None and total.cost.known > 0
    columns = (*_COLUMNS, "cost") if has_cost else _COLUMNS
    cells = [(terminal.clean(row.name), *_cells(row, has_cost)) for row in (*rows, total)]
    heading, *others = terminal.table([(by, *columns), *cells], right=range(1, len(columns) + 1))
    terminal.out(pen(heading, "bold"))
    for line in others:
        terminal.out(line)
    if total.cost is not None and has_cost and total.cost.unknown:
        notes = [f"cost: of {total.cost.unknown} of {total.steps} responses no price is known", *notes]
    for note in notes:
        terminal.out(pen(note, "dim"))


def _cells(row: Row, has_cost: bool) -> list[str]:
    use, cost = row.use, row.cost
    counts = [getattr(use, name) for name in _COLUMNS]
    told = ["-" if count is None else f"{count:,}" for count in counts]
    if use.estimated and use.reasoning is not None:
        told[-1] = f"~{told[-1]}"
    if has_cost:
        is_known = cost is not None and cost.known > 0 and (cost.usd > 0 or not cost.unknown)
        told.append(f"${cost.usd:.4f}" if cost is not None and is_known else "-")
    return told


def _as_json(row: Row) -> dict[str, Any]:
    use, cost = row.use, row.cost
    told = {**{name: getattr(use, name) for name in _COLUMNS}, "estimated": use.estimated}
    share = _reasoned(use)
    told["reasoning_share"] = None if share is None else round(share, 4)
    if cost is not None:
        told["cost_usd"] = round(cost.usd, 9) if cost.known else None
        told["cost_unknown_of"] = cost.unknown
    return told
