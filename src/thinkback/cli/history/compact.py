"""``compact``: say the earlier part of a conversation in fewer words; nothing is deleted."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from thinkback.cli import complete, terminal
from thinkback.cli.options import busy_options, db_option, json_option, open_line, session_argument
from thinkback.cli.progress import progress_line

if TYPE_CHECKING:
    from thinkback.model.commits import Commit
    from thinkback.session.history.compacting import CompactionOptions, CompactionPlan

STRATEGIES = ("deterministic", "model", "manual", "sliding_window", "tool_results", "middle_out", "thoughts")


@click.command("compact", short_help="Replace the earlier part of a session by a summary, or shorten old thoughts.")
@session_argument
@click.option(
    "--strategy", type=click.Choice(STRATEGIES), help="How to summarise; default: the setting compaction.strategy."
)
@click.option("--tail", type=click.IntRange(min=0), metavar="N", help="Keep the last N turns unchanged.")
@click.option("--head", type=click.IntRange(min=0), metavar="N", help="With middle_out: keep the first N turns too.")
@click.option(
    "--size", type=click.IntRange(min=0), metavar="N", help="With tool_results: keep N characters of each result."
)
@click.option("--text", help="With manual: the summary.")
@click.option(
    "--endpoint", shell_complete=complete.endpoints, help="With model and thoughts: endpoint of the model that writes."
)
@click.option("--model", shell_complete=complete.models, help="With model and thoughts: model that writes.")
@click.option("--list", "lists", is_flag=True, help="List the checkpoints.")
@click.option("--dry-run", is_flag=True, help="Show the effect, and change nothing.")
@busy_options
@db_option
@json_option
def compact_command(
    session: str,
    strategy: str | None,
    tail: int | None,
    lists: bool,
    dry_run: bool,
    db: str,
    as_json: bool,
    **given: object,
) -> None:
    """Create a checkpoint: later requests send a summary instead of the earlier part of SESSION.

    The commits stay in the log; the checkpoint is a commit too. A pinned commit is sent word for word after the
    summary, and the summary must contain an important one. A call stays with its result, and reasoning with its call.

    With thoughts, a model writes shorter forms of old thoughts instead. They are edits, which thinkback restore takes
    back; answers stay.
    """
    with open_line(db, session) as found:
        if lists:
            _list(found.compaction.list(), as_json)
            return
        options: CompactionOptions = {key: value for key, value in given.items() if value is not None}  # type: ignore[assignment]
        plan = found.compaction.plan(strategy, tail, **options)
        if not as_json and not dry_run:
            print_cost(plan)
        with progress_line("summarising") as progress:
            commit = None if dry_run else found.compaction.run(strategy, tail, progress=progress, **options)
    if commit is not None:  # a model may have written another summary than the one that was planned
        from msgspec.structs import replace

        plan = replace(plan, checkpoint=commit.value, estimated=False)
    if as_json:
        terminal.print_json(_as_json(plan, commit))
        return
    print_checkpoint(plan, commit)


def _list(commits: list[Commit], as_json: bool) -> None:
    from thinkback.session.transcripts.wording import first_words

    if as_json:
        from thinkback.cli.history.payloads import concealed

        terminal.print_json([{"hash": c.hash, "time": terminal.iso(c.time), **concealed(c)} for c in commits])
        return
    pen = terminal.pen(sys.stdout)
    for commit in commits:
        words = terminal.one_line(first_words(commit.value), 60)
        terminal.out(f"{pen(terminal.short(commit.hash), 'yellow')}  {terminal.clock(commit.time)}  {words}")


def _as_json(plan: CompactionPlan, commit: Commit | None) -> dict[str, object]:
    return {
        "hash": commit.hash if commit is not None else None,
        "strategy": plan.checkpoint.strategy,
        "summary": plan.checkpoint.summary,
        "covered": list(plan.covered),
        "kept": list(plan.kept),
        "trimmed": list(plan.trimmed),
        "effective_before": plan.checkpoint.before,
        "effective_after": plan.checkpoint.after,
        "unbound": [{"block": d.block, "what": d.what, "reason": d.reason} for d in plan.unbound],
        "estimated": plan.estimated,
        "shortened": list(plan.shortened),
        "thought_tokens_before": plan.thought_tokens[0],
        "thought_tokens_after": plan.thought_tokens[1],
        "void": [{"block": hash, "what": kind} for hash, kind in plan.void],
    }


def print_cost(plan: CompactionPlan) -> None:
    """Say what shorter thoughts cost, before a model is asked for them."""
    if not plan.shortened:
        return
    before, after = plan.thought_tokens
    count = terminal.plural(len(plan.shortened), "thought")
    terminal.out(f"{count} of about {before:,} tokens to be shortened to about {after:,}")
    if plan.void:
        terminal.out(f"  voids {terminal.plural(len(plan.void), 'opaque value')} that the provider gets back")


def print_checkpoint(plan: CompactionPlan, commit: Commit | None) -> None:
    """What a checkpoint does, or would do where it was not stored."""
    pen = terminal.pen(sys.stdout)
    before, after = plan.checkpoint.before, plan.checkpoint.after
    estimated = " (the model has not written yet)" if plan.estimated else ""
    if commit is None:
        print_cost(plan)
    terminal.out(pen(f"{plan.checkpoint.strategy}: about {before:,} tokens become about {after:,}{estimated}", "bold"))
    for count, what in (
        (plan.covered, "said in the summary"),
        (plan.kept, "kept word for word"),
        (plan.trimmed, "trimmed"),
        (plan.shortened, "thoughts shortened"),
    ):
        if count:
            terminal.out(f"  {len(count)} {what}")
    for decision in plan.unbound:
        terminal.out(
            pen(terminal.clean(f"  drops the {decision.what} of {decision.block[:8]}: {decision.reason}"), "dim")
        )
    if plan.checkpoint.summary:
        terminal.out(terminal.wrap(plan.checkpoint.summary, 2))
    terminal.out(f"checkpoint {terminal.short(commit.hash)}" if commit is not None else "nothing was stored: --dry-run")
