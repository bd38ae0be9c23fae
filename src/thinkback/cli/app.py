"""The entry point: finds a command, runs it, and turns whatever goes wrong into a message and an exit code.

Imports nothing but click and the tables it needs, so that ``--version`` and a mistyped command answer at once.
"""

from __future__ import annotations

import importlib
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from io import TextIOWrapper
from types import MappingProxyType
from typing import Any, NoReturn

import click

import thinkback
from thinkback import deprecations
from thinkback.cli import exits, hints, terminal
from thinkback.errors import ThinkbackError

# By what one wants to do, each command with a module of this package, or a whole name: shells do not import each other.
SECTIONS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "Every day": {
            "chat": "chat.command",
            "run": "run",
            "sessions": "history.log",
            "log": "history.log",
            "search": "history.search",
            "why": "history.why",
            "usage": "history.usage",
        },
        "Begin, and set up": {
            "demo": "demo",
            "endpoints": "config.endpoints",
            "models": "config.models",
            "keys": "config.keys",
            "settings": "config.settings",
            "profile": "config.profiles",
            "apps": "config.apps",
            "rules": "config.rules",
            "doctor": "config.doctor",
            "completion": "completion",
        },
        "Go another way in a session": {
            "branch": "history.branching",
            "switch": "history.branching",
            "fork": "history.branching",
            "merge": "history.branching",
            "reset": "history.branching",
            "rebase": "history.branching",
            "cherry-pick": "history.branching",
            "collapse": "history.branching",
            "tree": "history.lookback",
            "diff": "history.lookback",
            "timeline": "history.lookback",
        },
        "Look at and change what is stored": {
            "show": "history.log",
            "title": "history.title",
            "edit": "history.curate",
            "restore": "history.curate",
            "annotate": "history.curate",
            "reasoning": "history.curate",
            "compact": "history.compact",
            "compile": "history.compile",
        },
        "Serve editors, agents and other clients": {
            "gateway": "thinkback.servers.gateway.commands.gateway",
            "connect": "connect.command",
            "acp": "acp",
            "mcp": "mcp",
            "view": "view",
            "referee": "referee",
        },
        "Take along, delete and check": {
            "export": "history.exchange",
            "import": "history.exchange",
            "delete": "history.erase",
            "redact": "history.erase",
            "purge": "history.erase",
            "backup": "history.keep",
            "fsck": "history.log",
            "gc": "history.keep",
        },
        "Work on wire formats": {
            "decode": "wire.decode",
            "replay": "wire.replaying",
            "convert": "wire.convert",
            "probe": "config.probe",
        },
    }
)
COMMANDS: Mapping[str, str] = MappingProxyType(
    {name: module for section in SECTIONS.values() for name, module in section.items()}
)

# What other programs call it; the names here that are spelt alike undo something.
ELSEWHERE: Mapping[str, str] = MappingProxyType(
    {
        "exec": "To ask a model: thinkback run PROMPT",
        "history": "To read a session: thinkback log SESSION",
        "list": "To list the sessions: thinkback sessions",
        "login": "To store a key: thinkback keys set ENDPOINT",
        "resume": "To continue the session used last: thinkback chat --continue",
    }
)

# Options of other programs, and what stands for them where a command takes it.
OPTIONS: Mapping[str, tuple[str, str]] = MappingProxyType(
    dict.fromkeys(("--effort", "--reasoning-effort"), ("--set", "reasoning.effort"))
)

ENVIRONMENT = (
    ("THINKBACK_DB", "file or address of the log, unless --db is given"),
    ("THINKBACK_TENANT", "tenant at a postgresql:// address"),
    ("THINKBACK_CONFIG_DIR", "directory of settings, rules, profiles, apps, keys"),
    ("THINKBACK_USAGE_LOG", "file in which model calls log token usage"),
    ("THINKBACK_DEBUG=1", "print the traceback of a failure"),
    ("NO_COLOR=1", "no colours, no italics"),
)


class Commands(click.Group):
    """Imports the module of a command when it is asked for; click offers this by inheritance only."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands by what one wants to do, in one column."""
        width = max(map(len, COMMANDS))
        for title, names in SECTIONS.items():
            found = {name: self.get_command(ctx, name) for name in names}
            with formatter.section(title):
                formatter.write_dl(
                    [(f"{name:<{width}}", each.get_short_help_str(80)) for name, each in found.items() if each]
                )

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Exit codes and environment, wrapped to the terminal between words."""
        with formatter.section("Exit codes"):
            formatter.write_dl([(f"{row.code:>3}", row.meaning) for row in exits.EXITS])
        with formatter.section("Environment"):
            formatter.write_dl(ENVIRONMENT)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            import difflib

            word = args[0]
            close = [] if " " in word.strip() else difflib.get_close_matches(word, (*COMMANDS, *ELSEWHERE))
            known = [name for name in close if name in COMMANDS]
            if close and close[0] in ELSEWHERE:
                hint = ELSEWHERE[close[0]]
            elif known:
                hint = f"Did you mean {' or '.join(known)}?"
            else:
                hint = f"To ask a model: thinkback run {shlex.quote(word)}"
            ctx.fail(f"No such command '{word}'. {hint}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            _let_go()  # click would call it a failure
            ctx.exit(0)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        module = COMMANDS.get(cmd_name)
        if module is None:
            return None
        place = module if module.startswith("thinkback.") else f"thinkback.cli.{module}"
        found = getattr(importlib.import_module(place), f"{cmd_name.replace('-', '_')}_command")
        assert isinstance(found, click.Command)
        return found


@click.group(
    cls=Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(thinkback.__version__, prog_name="thinkback")
@click.pass_context
def group(ctx: click.Context) -> None:
    """Keep a model's reasoning and send it back: talk to models, see what is stored, what was sent back, and why."""
    if ctx.invoked_subcommand is None:
        from thinkback.cli.first_run import show_next

        show_next()


def main() -> NoReturn:
    """Run the command line and leave."""
    import warnings

    _fill_closed_streams()
    warnings.showwarning = lambda message, *_rest, **_named: terminal.complain(f"note: {message}")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # models do send lone surrogates, and a terminal may know few letters: never fail over a letter
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run(sys.argv[1:]))


def _fill_closed_streams() -> None:
    """What whoever started this has closed leads nowhere; the log would be opened as the next free descriptor."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 - it lasts as long as the process


def run(arguments: Sequence[str]) -> int:
    """Run one command; returns its exit code.

    A failure is printed on standard error, without a traceback; with ``--json`` also on standard output, as one object.
    """
    as_json = "--json" in arguments
    given = hints.given(arguments)
    deprecations.of_command(arguments)
    try:
        code = group.main(list(arguments), prog_name="thinkback", standalone_mode=False, obj=given)
        sys.stdout.flush()
    except click.ClickException as error:
        wrong = _explained(error, arguments)
        wrong.show()
        if as_json:
            terminal.print_error("usage", wrong.format_message())
        return wrong.exit_code
    except ThinkbackError as error:
        error.next_actions = tuple(given(action) for action in error.next_actions)
        if as_json:
            terminal.print_error(error.kind, error.message, error.details, error.actions_for_people)
        return _failed(error, error.for_people(), exits.code_of(error.kind))
    except (click.Abort, KeyboardInterrupt):
        terminal.complain("interrupted")
        if as_json:
            terminal.print_error("interrupted", "interrupted")
        return exits.INTERRUPTED
    except BrokenPipeError:
        _let_go()  # whoever read our output has seen enough, which is no failure
        return 0
    except OSError as error:
        text = f"{error.strerror or error}: {error.filename or 'no file is named'}"
        if _is_output_lost():
            text = f"standard output cannot be written: {error.strerror or error}"
        elif as_json:
            terminal.print_error("error", text)
        return _failed(error, text, exits.FAILED)
    except Exception as error:  # the outermost loop of a shell: a failure here is ours, and is told as such
        text, action = f"unexpected failure: {type(error).__name__}: {error}", "THINKBACK_DEBUG=1 shows where"
        if as_json:
            terminal.print_error("error", text, next_actions=(action,))
        return _failed(error, f"{text}\n  - {action}", exits.FAILED)
    return code if isinstance(code, int) else 0


def _explained(error: click.ClickException, arguments: Sequence[str]) -> click.ClickException:
    """``error``; one about an option of other programs names what stands for it here, with the value that was given."""
    if not isinstance(error, click.NoSuchOption) or error.ctx is None or error.option_name not in OPTIONS:
        return error
    option, key = OPTIONS[error.option_name]
    if not any(option in parameter.opts for parameter in error.ctx.command.params):
        return error
    given = " ".join(arguments).partition(error.option_name)[2].replace("=", " ").split()
    meant = f"{option} {key}={given[0] if given else 'VALUE'}"
    return click.UsageError(f"{error.message} Did you mean {meant}?", error.ctx)


def _is_output_lost() -> bool:
    """Whether standard output takes nothing any more; then it is let go of."""
    try:
        sys.stdout.flush()
    except OSError:
        _let_go()
        return True
    return False


def _let_go() -> None:
    """What is still buffered for standard output goes nowhere; the interpreter would fail over it at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _failed(error: Exception, text: str, code: int) -> int:
    if os.environ.get("THINKBACK_DEBUG") == "1":
        import traceback

        text = "".join(traceback.format_exception(error)).rstrip()
    terminal.complain(text)
    return code
