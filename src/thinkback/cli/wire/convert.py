"""``convert``: a request of one dialect as a request of another."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, Literal

import click

from thinkback.cli import complete, terminal
from thinkback.cli.decisions import control_line, rule_text
from thinkback.cli.options import DIALECTS, json_option
from thinkback.cli.wire.decode import read_file
from thinkback.errors import WireError

if TYPE_CHECKING:
    from thinkback.cli.wire.conversion import Converted

_HELP = f"""\
Convert a request body (FILE, or standard input) from one dialect to another.

The body goes to standard output; a report on its reasoning and parameters goes to standard error. The target is the
endpoint of the dialect's maker unless --endpoint is given, and the model that the body names unless --model is given.
Opaque values of reasoning are included only if --minted-by names their endpoint and model and the target can read them.

{DIALECTS}
"""


@click.command("convert", short_help="Convert a request to another dialect.", help=_HELP)
@click.option("--from", "source", metavar="DIALECT", required=True, help="Dialect of the input.")
@click.option("--to", "target", metavar="DIALECT", required=True, help="Dialect of the output.")
@click.option(
    "--endpoint", shell_complete=complete.endpoints, metavar="ID", default="", help="Target endpoint; its rules apply."
)
@click.option("--model", shell_complete=complete.models, metavar="NAME", default="", help="Target model.")
@click.option(
    "--minted-by",
    nargs=2,
    metavar="ENDPOINT MODEL",
    default=None,
    help="Endpoint and model that made the reasoning in the body.",
)
@click.option(
    "--foreign",
    type=click.Choice(["drop", "summary", "text"]),
    default="drop",
    help="What to do with readable reasoning that the target cannot take back (setting reasoning.foreign).",
)
@json_option
@click.argument("file", default="-")
def convert_command(
    source: str,
    target: str,
    endpoint: str,
    model: str,
    minted_by: tuple[str, str] | None,
    foreign: Literal["drop", "summary", "text"],
    file: str,
    as_json: bool,
) -> None:
    """Read, convert, print."""
    from thinkback.cli.wire.conversion import Way, convert
    from thinkback.model.target import Settings
    from thinkback.session import config

    way = Way(source, target, endpoint, model, minted_by)
    settings = Settings(foreign=foreign)
    book = config.rulebook()
    converted = convert(_body(read_file(file, "convert")), way, book, config.today(), settings)
    if as_json:
        terminal.print_json(_as_json(converted))
        return
    for line in _report(converted):
        terminal.note(line)
    sys.stdout.write(bytes(converted.plan).decode("utf-8", "surrogatepass") + "\n")


def _body(data: bytes) -> dict[str, Any]:
    try:
        body = json.loads(data)
    except ValueError as error:
        raise WireError(f"the request is not JSON: {error}") from None
    if not isinstance(body, dict):
        raise WireError("the request is not a JSON object")
    return body


def _report(converted: Converted) -> list[str]:
    plan = converted.plan
    return [
        f"for {plan.target.endpoint.id} {plan.target.model}, {rule_text(plan.target)}",
        *(f"{decision.action} {decision.what}: {decision.reason}" for decision in plan.decisions),
        *map(control_line, plan.controls),
        *(f"not carried over: {left}" for left in converted.left),
    ]


def _as_json(converted: Converted) -> dict[str, Any]:
    import msgspec

    plan = converted.plan
    return {
        "endpoint": plan.target.endpoint.id,
        "model": plan.target.model,
        "rule": plan.target.rule.id,
        "guessed": plan.target.guessed,
        "body": msgspec.json.decode(bytes(plan)),
        "decisions": [msgspec.structs.asdict(decision) for decision in plan.decisions],
        "controls": [msgspec.structs.asdict(control) for control in plan.controls],
        "not_carried": list(converted.left),
    }
