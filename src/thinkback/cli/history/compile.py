"""``compile``: what a conversation says, now or then, for people or in the words of a dialect."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from thinkback.cli import terminal
from thinkback.cli.decisions import about_tokens
from thinkback.cli.options import db_option, json_option, open_line, session_option
from thinkback.wire.registry import PACKAGES

if TYPE_CHECKING:
    from thinkback.compile.neutral import Compiled


@click.command("compile", short_help="Print a conversation as it is or was.")
@click.argument("at", default="")
@click.option(
    "--at-time", metavar="TIME", help="Print the session as of this time: 2026-07-01 or 2026-07-01T12:30:00Z."
)
@click.option("--with-reasoning", is_flag=True, help="Include reasoning, as separate messages.")
@click.option(
    "--strategy",
    type=click.Choice(("full", "last", "adaptive")),
    default="full",
    help="How much of the session to print.",
)
@click.option("--turns", type=click.IntRange(min=1), default=5, show_default=True, help="With last: number of turns.")
@click.option(
    "--tokens", type=click.IntRange(min=0), default=8000, show_default=True, help="With adaptive: number of tokens."
)
@click.option("--order", multiple=True, metavar="HASH", help="Put this message first; repeatable.")
@click.option(
    "--format",
    "form",
    type=click.Choice(("text", "json", *PACKAGES)),
    default="text",
    help="Print text for people, JSON, or a request of a dialect.",
)
@session_option
@db_option
@json_option
def compile_command(
    at: str, with_reasoning: bool, form: str, session: str, db: str, as_json: bool, **given: Any
) -> None:
    """Print the messages of the session at the commit AT (a branch, HEAD~1, the beginning of a hash), or now.

    Edits, priorities and checkpoints apply as they did at AT. Opaque values and verbatim objects are left out.
    """
    if as_json and form != "text":
        raise click.UsageError("--json is --format json: give one of them")
    with open_line(db, session) as found:
        context = found.compile(at, include_reasoning=with_reasoning, **given)
    for warning in context.warnings:
        terminal.note(warning)
    if as_json or form == "json":
        terminal.print_json(
            {
                "messages": context.to_dicts(),
                "token_count": context.token_count,
                "token_source": context.token_source,
                "commits": list(context.commit_hashes),
            }
        )
    elif form != "text":
        from thinkback.wire.registry import dialect

        terminal.print_json(
            context.to_request(dialect(form).writer, field="reasoning_content" if with_reasoning else "")
        )
    else:
        _print(context)


def _print(context: Compiled) -> None:
    pen = terminal.pen(sys.stdout)
    for message in context.messages:
        thought = message.role == "reasoning"
        terminal.out(
            pen(f"[{message.role}]" if thought else message.role, *(("dim", "cyan") if thought else ("bold",)))
        )
        terminal.out(pen(terminal.wrap(message.text, 2), *(("dim", "cyan") if thought else ())))
    terminal.note(f"{terminal.plural(len(context.messages), 'message')}, {about_tokens(context.token_count)}")
