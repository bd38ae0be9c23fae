"""``mcp``: a Model Context Protocol server over standard input and output, for other agents.

The package ``mcp`` is imported when the server starts, never before.
"""

from __future__ import annotations

import click

from thinkback.cli.options import db_option, log_path, open_log
from thinkback.errors import MissingPackageError, install_hint

QUERIES = ("query", "parallel_query", "second_opinion")
DEFAULT_BUDGET = 1_000_000

_HELP = f"""\
Serve the log to other agents as an MCP server over standard input and output.

Its tools list sessions, search and read messages and reasoning, explain why reasoning was sent back or not, and sum up
usage. No tool changes the log, and no tool shows an opaque value, a key or an account.

--allow-queries adds tools that query models: {", ".join(QUERIES)}. Each query is a session of its
own in the log. The tools reach only the --target models; --token-budget limits all tokens that they use while the
server runs, hidden reasoning included.
"""


@click.command("mcp", short_help="Serve the log to other agents (MCP): read and search.", help=_HELP)
@click.option(
    "--allow-queries",
    "allowed",
    multiple=True,
    metavar="TOOL",
    type=click.Choice((*QUERIES, "all")),
    help="Offer this tool, which queries models; `all` offers all of them; repeatable.",
)
@click.option(
    "--target", "targets", multiple=True, metavar="ENDPOINT/MODEL", help="A model that the tools may query; repeatable."
)
@click.option(
    "--token-budget",
    metavar="N",
    type=click.IntRange(min=1),
    default=DEFAULT_BUDGET,
    show_default=True,
    help="Token limit for all queries together.",
)
@db_option
def mcp_command(allowed: tuple[str, ...], targets: tuple[str, ...], token_budget: int, db: str) -> None:
    """Serve until standard input ends. A missing log is created: other programs may begin to fill it."""
    try:
        import mcp  # noqa: F401
    except ImportError as error:
        raise MissingPackageError(
            "an MCP server needs the package mcp, which is not installed",
            details={"package": "mcp", "extra": "mcp"},
            next_actions=(install_hint("mcp"),),
        ) from error
    if bool(allowed) != bool(targets):
        missing = "--target says which models" if allowed else "--allow-queries says which tools"
        raise click.UsageError(f"{missing} may be asked: --allow-queries and --target go together")
    from thinkback.servers import stdio
    from thinkback.servers.mcp.asking import Asker, asking_tools, read_targets
    from thinkback.servers.mcp.budget import TokenBudget
    from thinkback.servers.mcp.server import serve
    from thinkback.servers.mcp.tools import READING

    with open_log(log_path(db), asks=bool(allowed)) as store:
        tools = list(READING)
        if allowed:
            asker = Asker(store, read_targets(store, targets), TokenBudget(token_budget))
            names = QUERIES if "all" in allowed else allowed
            tools += [tool for tool in asking_tools(asker) if tool.name in names]
        stdio.serve(serve(store, tools))
