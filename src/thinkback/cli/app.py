"""The entry point: finds a command, runs it, and turns whatever goes wrong into a message and an exit code.

Imports nothing but click and the tables it needs, so that ``--version`` and a mistyped command answer at once.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from io import TextIOWrapper
from types import MappingProxyType
from typing import NoReturn

import click

import thinkback
from thinkback.cli import exits, terminal
from thinkback.errors import ThinkbackError

COMMANDS: Mapping[str, str] = MappingProxyType(
    {
        "demo": "demo",
        "run": "run",
        "chat": "chat.command",
        "sessions": "history",
        "log": "history",
        "show": "history",
        "why": "why",
        "branch": "branching",
        "switch": "branching",
        "fork": "branching",
        "reset": "branching",
        "merge": "branching",
        "cherry-pick": "branching",
        "rebase": "branching",
        "collapse": "branching",
        "tree": "lookback",
        "diff": "lookback",
        "timeline": "lookback",
        "compile": "compile",
        "compact": "compact",
        "annotate": "curate",
        "edit": "curate",
        "restore": "curate",
        "doctor": "doctor",
        "settings": "settings",
        "profile": "profiles",
        "keys": "keys",
        "endpoints": "endpoints",
        "apps": "apps",
        "probe": "probe",
        "decode": "decode",
        "replay": "replaying",
        "convert": "convert",
        "referee": "referee",
        "mcp": "mcp",
        "acp": "acp",
        "search": "search",
        "usage": "usage",
        "export": "exchange",
        "import": "exchange",
        "delete": "erase",
        "purge": "erase",
        "redact": "erase",
        "fsck": "history",
        "gc": "keep",
        "backup": "keep",
    }
)

EPILOG = f"""\b
Exit codes:
{exits.table()}

\b
Environment:
  THINKBACK_DB            the log's file or address, where --db is not given
  THINKBACK_TENANT        whose log it is at a postgresql:// address
  THINKBACK_CONFIG_DIR    where settings.toml, rules.toml, profiles, apps and keys are
  THINKBACK_USAGE_LOG     where commands that ask models log the use of requests
  THINKBACK_DEBUG=1       show where an unexpected failure happened
  NO_COLOR=1              no colours, no italics
"""


class Commands(click.Group):
    """Imports the module of a command when it is asked for; click offers this by inheritance only."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        module = COMMANDS.get(cmd_name)
        if module is None:
            return None
        found = getattr(importlib.import_module(f"thinkback.cli.{module}"), f"{cmd_name.replace('-', '_')}_command")
        assert isinstance(found, click.Command)
        return found


@click.group(cls=Commands, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(thinkback.__version__, prog_name="thinkback")
def group() -> None:
    """Keeps a model's reasoning and gives it back: talk to a model, see what is stored, what went back, and why."""


def main() -> NoReturn:
    """Run the command line and leave."""
    import warnings

    warnings.showwarning = lambda message, *_rest, **_named: terminal.complain(f"note: {message}")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # models do send lone surrogates, and a terminal may know few letters: never fail over a letter
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command; returns its exit code. Failures are told on standard error, without a traceback."""
    try:
        code = group.main(list(arguments), prog_name="thinkback", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except ThinkbackError as error:
        return _failed(error, str(error), exits.code_of(error.kind))
    except (click.Abort, KeyboardInterrupt):
        terminal.complain("interrupted")
        return exits.INTERRUPTED
    except BrokenPipeError:
        # whoever read our output has seen enough; what is still buffered goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exits.FAILED
    except OSError as error:
        return _failed(error, f"{error.strerror or error}: {error.filename or 'no file is named'}", exits.FAILED)
    except Exception as error:  # the outermost loop of a shell: a failure here is ours, and is told as such
        text = f"unexpected failure: {type(error).__name__}: {error}\n  - THINKBACK_DEBUG=1 shows where"
        return _failed(error, text, exits.FAILED)
    return code if isinstance(code, int) else 0


def _failed(error: Exception, text: str, code: int) -> int:
    if os.environ.get("THINKBACK_DEBUG") == "1":
        raise error
    terminal.complain(text)
    return code
