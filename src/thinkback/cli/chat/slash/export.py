"""``/compact``, ``/export`` and ``/reasoning``: say a long history in fewer words, take it elsewhere, add a thought."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING

import click

from thinkback.cli import terminal
from thinkback.cli.chat.progress import working
from thinkback.cli.chat.slash.row import Slash, words

if TYPE_CHECKING:
    from thinkback.cli.chat.chat import Chat

COMPACT = "compact [--dry-run] [--tail N] [STRATEGY]"
EXPORT = "export FILE [--format FORMAT] [--with-reasoning] [--complete] [--force]"
REASONING = "reasoning TEXT"
_STRATEGIES = ("deterministic", "model", "sliding_window", "tool_results", "middle_out", "thoughts")


def compact(chat: Chat, rest: str) -> None:
    """Make a checkpoint, or say what it would do."""
    from msgspec.structs import replace

    from thinkback.cli.history.compact import print_checkpoint, print_cost

    given = words(rest, COMPACT, most=4)
    tail = _tail(given)
    dry = "--dry-run" in given
    named = [word for word in given if word != "--dry-run"]
    if len(named) > 1 or any(word not in _STRATEGIES for word in named):
        raise click.UsageError(f"/compact {' '.join(named)}: allowed are {', '.join(_STRATEGIES)}")
    strategy = named[0] if named else None
    compaction = chat.session.compaction
    plan, commit = compaction.plan(strategy, tail), None
    if not dry:
        print_cost(plan)
        with working("summarising"):
            commit = compaction.run(strategy, tail)
        plan = replace(plan, checkpoint=commit.value, estimated=False)
    print_checkpoint(plan, commit)


def _tail(given: list[str]) -> int | None:
    """How many turns are to stay, which is taken out of ``given``."""
    if "--tail" not in given:
        return None
    at = given.index("--tail")
    number = given[at + 1] if at + 1 < len(given) else ""
    if not (number.isascii() and number.isdigit()):
        raise click.UsageError(f"--tail wants a whole number from 0: usage is /{COMPACT}")
    del given[at : at + 2]
    return int(number)


def export(chat: Chat, rest: str) -> None:
    """Write this session to a file."""
    from thinkback.cli.history.exchange import FORMATS, print_exported, refuse_taken, tell_left_out
    from thinkback.session.exchange.exporting import format_of

    given = words(rest, EXPORT, 1, 6)
    form = ""
    if "--format" in given[:-1]:
        at = given.index("--format")
        form = given[at + 1]
        del given[at : at + 2]
    options = {"--with-reasoning", "--complete", "--force"} & set(given)
    files = [word for word in given if word not in options]
    if len(files) != 1 or files[0].startswith("--") or (form and form not in FORMATS):
        raise click.UsageError(f"usage: /{EXPORT}; formats are {', '.join(FORMATS)}")
    file = os.path.expanduser(files[0])
    refuse_taken(file, "--force" in options)
    with working("exporting"):
        done = chat.store.export(
            file,
            session=chat.session.name,
            format=form,
            with_reasoning="--with-reasoning" in options,
            complete="--complete" in options,
        )
    print_exported(done, terminal.clean(file))
    tell_left_out(done, form or format_of(file))


def reasoning(chat: Chat, rest: str) -> None:
    """Add reasoning by hand."""
    text = rest.strip()
    if not text:
        raise click.UsageError(f"usage: /{REASONING}")
    commit = chat.session.reasoning(text)
    terminal.note(f"stored as reasoning {terminal.short(commit.hash)}; it is never sent to a provider")


def _compact(_chat: Chat, before: Sequence[str]) -> Iterable[str]:
    return [word for word in ("--dry-run", "--tail", *_STRATEGIES) if word not in before]


def _export(_chat: Chat, before: Sequence[str]) -> Iterable[str]:
    from thinkback.cli.history.exchange import FORMATS

    if before and before[-1] == "--format":
        return FORMATS
    return [word for word in ("--format", "--with-reasoning", "--complete", "--force") if before and word not in before]


def _file(before: Sequence[str], begun: str) -> Iterable[str]:
    """Files and directories that begin so, where the file's name is still to be said; hidden ones if asked for."""
    values = {word for option, word in pairwise(before) if option == "--format"}
    is_said = any(not word.startswith("--") and word not in values for word in before)
    if is_said or before[-1:] == ["--format"]:
        return
    yield from files(begun)


def files(begun: str) -> Iterable[str]:
    """Files and directories whose name begins so and can stand in a line; hidden ones if asked for."""
    stem, name = begun[: begun.rfind("/") + 1], begun[begun.rfind("/") + 1 :]
    with suppress(OSError), os.scandir(os.path.expanduser(stem) or ".") as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            is_hidden = entry.name.startswith(".") and not name.startswith(".")
            if entry.name.startswith(name) and not is_hidden and _is_one_word(entry.name):
                yield f"{stem}{entry.name}{'/' if entry.is_dir() else ''}"


def _is_one_word(name: str) -> bool:
    """Whether a name can stand in a line without quotation marks."""
    return name.isprintable() and not set(" '\"\\").intersection(name)


ROWS = (
    Slash("compact", COMPACT, "Replace the earlier part by a summary, or shorten old thoughts.", compact, _compact),
    Slash("reasoning", REASONING, "Add reasoning of your own to the log; it is never sent to a provider.", reasoning),
    Slash("export", EXPORT, "Write this session to a file.", export, _export, _file),
)
