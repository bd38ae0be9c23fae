"""``replay``: a recorded conversation, and what our own requests for it would have carried."""

from __future__ import annotations

import sys
from typing import Any

import click

from thinkback.cli import terminal
from thinkback.cli.options import DIALECTS, json_option

Json = dict[str, Any]


_HELP = f"""\
Compare the requests that thinkback would send with a recorded conversation. CASE is its JSON file.

Each recorded request of a known dialect is compared: its reasoning by kind, and the hashes of its opaque values in
order. A difference that a rule row explains is printed with the row's source.

{DIALECTS}
"""


@click.command("replay", short_help="Compare thinkback's requests with recorded ones.", help=_HELP)
@click.argument("case")
@json_option
def replay_command(case: str, as_json: bool) -> None:
    """Replay and print."""
    from thinkback.cli.wire.replay import replay_file

    found = replay_file(case)
    if as_json:
        terminal.print_json(found)
        return
    pen = terminal.pen(sys.stdout)
    for exchange in found["exchanges"]:
        _print_exchange(exchange, pen)
    if not found["exchanges"]:
        terminal.out("no exchange of a known dialect has a request: nothing to compare")
    elif not found["differs"]:
        terminal.out("all requests carry what the recorded ones carried")
    else:
        terminal.out(f"some differ; unexplained: {found['unexplained']}")


def _print_exchange(exchange: Json, pen: terminal.Pen) -> None:
    guessed = " (guessed)" if exchange["guessed"] else ""
    title = (
        f"exchange {exchange['exchange']}: {exchange['endpoint']} {exchange['model']}, rule {exchange['rule']}{guessed}"
    )
    terminal.out(pen(terminal.clean(title), "bold"))
    terminal.out(f"  {terminal.plural(exchange['earlier_responses'], 'earlier response')} in the request")
    ours, recorded = exchange["compiled"] or {}, exchange["recorded"]
    rows = [("carried", "recorded", "ours")]
    rows += [(key, _cell(recorded.get(key, 0)), _cell(ours.get(key, 0))) for key in {**recorded, **ours}]
    heading, *lines = terminal.table(rows, right=(1, 2))
    terminal.out(f"  {pen(heading, 'dim')}")
    for line in lines:
        terminal.out(f"  {line}")
    for difference in exchange["differences"]:
        explained = difference["explained_by"]
        why = f"explained: {explained['source']}" if explained else "unexplained"
        style: terminal.Style = "yellow" if explained else "red"
        terminal.out(pen(terminal.wrap(f"differs in {difference['key']}, {why}", 2), style))


def _cell(value: Any) -> str:
    return str(len(value) if isinstance(value, list) else value)
