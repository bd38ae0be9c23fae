"""``why``: what was done with each block of earlier reasoning in the last request, or will be in the next."""

from __future__ import annotations

import sys
from typing import Any

import click

from thinkback.cli import terminal
from thinkback.cli.decisions import as_json as plan_json
from thinkback.cli.decisions import decision_lines
from thinkback.cli.options import (
    DIALECTS,
    Place,
    check_place,
    chosen,
    db_option,
    existing_log,
    json_option,
    opened,
    place_after,
    place_options,
)

_HELP = f"""\
Show what was sent back of earlier reasoning, block by block, by which rule, and why.

SESSION is the one used last unless named. The last request is recomputed from its record and checked by its digest;
what the provider reported about it stands beside. Stand-ins, what the provider keeps itself, and what became of each
setting are told too. With --next, endpoint and model are those of the last request unless given.

{DIALECTS}
"""


@click.command("why", short_help="What was sent back of earlier reasoning, and why.", help=_HELP)
@click.argument("session", required=False)
@click.option("--next", "of_next", is_flag=True, help="The request that would be sent next, instead of the last one.")
@place_options
@db_option
@json_option
def why_command(session: str | None, of_next: bool, as_json: bool, db: str, **given: Any) -> None:
    """Explain and print."""
    with existing_log(db) as store:
        info = chosen(store, session)
        place = Place(given["endpoint"], given["model"], given["base_url"], given["key_env"])
        if of_next:
            place = place_after(place, store.commits(info.id))
            check_place(place)
        plan = opened(store, info.name, place if of_next else Place()).explain(next=of_next)
    which = "next" if of_next else "last"
    if as_json:
        terminal.print_json({"session": info.name, "request": which, **plan_json(plan)})
        return
    pen = terminal.pen(sys.stdout)
    target = plan.target
    guessed = " (guessed)" if target.guessed else ""
    messages = terminal.plural(len(plan.messages), "message")
    terminal.out(pen(f"session {info.name}, {which} request: {target.endpoint.id} {target.model}, {messages}", "bold"))
    terminal.out(pen(f"{target.base_url}, rule {target.rule.id}{guessed}", "dim"))
    for line in decision_lines(plan, pen):
        terminal.out(line)
