"""``annotate``, ``reasoning``, ``edit`` and ``restore``: what is wanted of a commit, what was thought besides, and what
a commit is to say. Nothing is overwritten.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from thinkback.cli import terminal
from thinkback.cli.options import busy_options, confirm, db_option, json_option, open_line, session_option

if TYPE_CHECKING:
    from thinkback.model.commits import Commit
    from thinkback.session.session import Session

_PRIORITIES = ("skip", "normal", "important", "pinned", "default")
yes_option = click.option("--yes", is_flag=True, help="Do not ask before opaque values are voided.")


@click.command("annotate", short_help="Annotate a commit: skip it, pin it, tag it.")
@click.argument("hash")
@click.argument("priority", required=False, type=click.Choice(_PRIORITIES))
@click.option("--reason", default="", help="Reason, stored with the annotation.")
@click.option("--retain", multiple=True, metavar="TEXT", help="Text that a summary must contain; repeatable.")
@click.option("--tag", "tags", multiple=True, metavar="NAME", help="Add a tag; repeatable.")
@click.option("--untag", multiple=True, metavar="NAME", help="Remove a tag; repeatable.")
@click.option("--message", default="", help="Note for people.")
@yes_option
@session_option
@busy_options
@db_option
@json_option
def annotate_command(
    hash: str,
    priority: str | None,
    reason: str,
    retain: tuple[str, ...],
    tags: tuple[str, ...],
    untag: tuple[str, ...],
    message: str,
    yes: bool,
    session: str,
    db: str,
    as_json: bool,
) -> None:
    """Annotate the commit HASH (its first characters are enough) of the current branch.

    The priority decides what requests contain of the commit: skip leaves it out, normal lets the settings decide,
    important makes a summary contain it, pinned sends it word for word, default removes an earlier priority.
    """
    with open_line(db, session) as found:
        if priority == "skip":
            _ask(found, hash, yes)
        commit = _quietly(
            lambda: found.annotate(
                hash,
                None if priority == "default" else priority,
                default=priority == "default",
                reason=reason,
                retain=retain,
                tags=tags,
                untag=untag,
                message=message,
            )
        )
    _print_commit(commit, as_json, "annotated")


@click.command("reasoning", short_help="Add reasoning by hand.")
@click.argument("text")
@click.option(
    "--format", default="parsed", show_default=True, help="Source format of TEXT; an unknown word lists the formats."
)
@click.option("--message", default="", help="Note for people.")
@click.option("--tag", "tags", multiple=True, metavar="NAME", help="Add a tag; repeatable.")
@session_option
@busy_options
@db_option
@json_option
def reasoning_command(
    text: str, format: str, message: str, tags: tuple[str, ...], session: str, db: str, as_json: bool
) -> None:
    """Add TEXT (`-` reads standard input) to the current branch as reasoning, for readers and for search.

    It is never sent to a provider. `thinkback compile --with-reasoning` shows it among the messages.
    """
    words = sys.stdin.read() if text == "-" else text
    with open_line(db, session) as found:
        commit = found.reasoning(words, format=format, message=message, tags=tags)
    if as_json:
        terminal.print_json({"hash": commit.hash, "kind": commit.kind})
        return
    terminal.out(f"reasoning {terminal.short(commit.hash)}")


@click.command("edit", short_help="Replace a commit's text.")
@click.argument("hash")
@click.argument("text")
@yes_option
@session_option
@busy_options
@db_option
@json_option
def edit_command(hash: str, text: str, yes: bool, session: str, db: str, as_json: bool) -> None:
    """Replace the text of the commit HASH of the current branch by TEXT (`-` reads standard input).

    The commit itself stays unchanged; `thinkback restore HASH` restores its text.
    """
    words = sys.stdin.read() if text == "-" else text
    with open_line(db, session) as found:
        _ask(found, hash, yes)
        commit = _quietly(lambda: found.commit(words, edit=hash))
    _print_commit(commit, as_json, "edited")


@click.command("restore", short_help="Undo an edit.")
@click.argument("hash")
@click.argument("version", type=click.IntRange(min=0), default=0)
@yes_option
@session_option
@busy_options
@db_option
@json_option
def restore_command(hash: str, version: int, yes: bool, session: str, db: str, as_json: bool) -> None:
    """Restore the text that the commit HASH had at first, or after VERSION edits."""
    with open_line(db, session) as found:
        if version:
            _ask(found, hash, yes)
        commit = _quietly(lambda: found.restore(hash, version))
    _print_commit(commit, as_json, "restored")


def _ask(session: Session, hash: str, yes: bool) -> None:
    """Say which opaque values a change voids, before it is made."""
    void = session.voids(hash)
    if not void:
        return
    for commit, kind in void:
        terminal.note(f"voids the {kind} of {commit[:12]}: it will not go back to its provider")
    if not yes:
        confirm("Go on?")


def _quietly(work: Callable[[], Commit]) -> Commit:
    """``work`` without the warning that ``_ask`` has told already."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return work()


def _print_commit(commit: Commit, as_json: bool, done: str) -> None:
    from thinkback.cli.history.payloads import concealed

    if as_json:
        terminal.print_json({"hash": commit.hash, "kind": commit.kind, "payload": concealed(commit)})
        return
    target = commit.edit or getattr(commit.value, "target", "")
    terminal.out(f"{done} {terminal.short(target)} with {terminal.short(commit.hash)}")
