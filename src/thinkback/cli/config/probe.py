"""``probe``: find out by experiment what a host demands of earlier reasoning, and keep it as a rule row.

The row goes to standard output, everything else to standard error.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from thinkback.cli import complete, exits, terminal
from thinkback.cli.options import confirm, json_option
from thinkback.wire.registry import CHAT, PACKAGES

if TYPE_CHECKING:
    from thinkback.session.probe import Prepared, Result
    from thinkback.turn.probing.experiments import Ask
    from thinkback.turn.probing.findings import Outcome

_MILLION = 1_000_000
_LONGEST_TEXT = 300


@click.command("probe", short_help="Find out which reasoning a host requires back.")
@click.argument("endpoint", shell_complete=complete.endpoints)
@click.option("--model", shell_complete=complete.models, metavar="NAME", required=True, help="The model to test.")
@click.option(
    "--base-url", metavar="URL", default="", help="Base URL of a new ENDPOINT, or one that replaces the endpoint's own."
)
@click.option(
    "--dialect",
    metavar="NAME",
    default=CHAT,
    show_default=True,
    help="Wire format of an ENDPOINT that is not in the catalogue.",
)
@click.option("--key-env", metavar="NAME", default="", help="Environment variable that holds the key.")
@click.option(
    "--param",
    "params",
    metavar="KEY=VALUE",
    multiple=True,
    help="Set a field of each request; dots nest, JSON is parsed; repeatable.",
)
@click.option(
    "--max-tokens",
    metavar="NUMBER",
    type=click.IntRange(1),
    default=4096,
    show_default=True,
    help="Output limit of each request, reasoning included.",
)
@click.option(
    "--price", metavar="IN,OUT", default="", help="Price of a million input and output tokens, for the estimate."
)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--save", is_flag=True, help="Save the row in your own rule files.")
@json_option
def probe_command(endpoint: str, model: str, **given: Any) -> None:
    """Test with your key which earlier reasoning ENDPOINT requires, by sending back a short conversation in variations.

    Prints the rule row that the responses imply, and its differences from the row that thinkback ships. An ENDPOINT
    that is not in the catalogue needs --base-url. The estimated cost is shown first.
    """
    from thinkback.session import probe

    price = _price(given["price"])
    wanted = probe.Wanted(
        endpoint=endpoint,
        model=model,
        base_url=given["base_url"],
        dialect=_dialect(given["dialect"]),
        key_variable=given["key_env"],
        params=_params(given["params"]),
        limit=given["max_tokens"],
    )
    prepared = probe.prepare(wanted)
    _print_cost(prepared, price)
    _confirm(given["yes"])
    result = probe.run(prepared, _print_request)
    _print_outcomes(result)
    _print_differences(prepared, result)
    silent = result.findings.form == "none"
    saved = str(probe.save(prepared, result)) if given["save"] and not silent else ""
    if given["as_json"]:
        terminal.print_json(_as_json(prepared, result, saved))
    else:
        terminal.out(_text(prepared, result).rstrip("\n"))
    if silent:
        terminal.note("no response had reasoning; if the model must be told to reason, use --param KEY=VALUE")
        if given["save"]:
            terminal.complain("nothing was saved: responses without reasoning show no requirements")
            sys.exit(exits.FAILED)
    terminal.note(f"saved in {saved}" if saved else "not saved: --save saves the row in your own rule files")
    place = prepared.target.endpoint
    if saved and prepared.target.base_url != place.base_url:
        apart = "`thinkback probe NEW-NAME --base-url URL --model NAME`"
        terminal.note(f"the row applies to {place.id} at every address; for a row of its own run {apart}")


def _dialect(name: str) -> str:
    if name not in PACKAGES:
        raise click.UsageError(f"--dialect: there is no {name!r}; use one of: {', '.join(sorted(PACKAGES))}")
    return name


def _params(given: Sequence[str]) -> dict[str, Any]:
    from thinkback.model.target import merge
    from thinkback.turn.controls import nested

    params: dict[str, Any] = {}
    for pair in given:
        key, equals, text = pair.partition("=")
        if not key.strip() or not equals:
            raise click.UsageError(f"--param wants KEY=VALUE, got {pair!r}")
        try:
            value: Any = json.loads(text)
        except ValueError:
            value = text
        params = merge(params, nested(key.strip(), value))
    return params


def _price(given: str) -> tuple[float, float] | None:
    if not given:
        return None
    try:
        one, other = (float(part) for part in given.split(","))
    except ValueError:
        raise click.UsageError(f"--price wants IN,OUT as numbers, got {given!r}") from None
    return one, other


def _print_cost(prepared: Prepared, price: tuple[float, float] | None) -> None:
    """What the probe sends and may cost; nothing was sent yet."""
    from thinkback.turn.probing.conversation import ROUGHLY
    from thinkback.turn.probing.experiments import most

    target, limit = prepared.target, prepared.wanted.limit
    requests = most(target.endpoint.dialect)
    terminal.note(f"probe of {target.model} at {target.endpoint.id} ({target.base_url})")
    terminal.note(
        f"  at most {requests} requests, each with about {ROUGHLY} tokens of input and the reasoning sent back,"
    )
    terminal.note(f"  and at most {limit} tokens of output: {requests * limit} in all, usually a small part of that")
    if price is None:
        terminal.note("  price: unknown (set it with --price IN,OUT)")
    else:
        # the reasoning of two answers goes back
        worst = requests * ((ROUGHLY + 2 * limit) * price[0] + limit * price[1]) / _MILLION
        terminal.note(f"  price: at most {worst:.2f}, if every answer reaches the limit")


def _confirm(yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError("a probe costs money and needs confirmation: run it on a terminal, or add --yes")
    confirm("Continue?")


def _print_request(ask: Ask) -> None:
    """What is being waited for, to somebody who waits."""
    if sys.stderr.isatty():
        terminal.note(f"asking: {ask.says}")


def _print_outcomes(result: Result) -> None:
    pen = terminal.pen(sys.stderr)
    terminal.note()
    for outcome in result.findings.outcomes.values():
        verdict = pen("accepted", "green") if outcome.accepted else pen(f"refused ({outcome.status})", "yellow")
        click.echo(f"{outcome.says}: {verdict}", err=True, color=True)
        if outcome.text:
            terminal.note(f"  {_shown(outcome)}")


def _shown(outcome: Outcome) -> str:
    return terminal.without_keys(terminal.one_line(outcome.text, _LONGEST_TEXT))


def _print_differences(prepared: Prepared, result: Result) -> None:
    rule, probed = prepared.target.rule, result.probed
    terminal.note()
    if not prepared.known:
        terminal.note(f"no row was known for this model at this endpoint; compared with {rule.id}:")
    for found in probed.differences:
        terminal.note(f"{found.key}: {_plain(found.known)} in {rule.id}, {_plain(found.probed)} here: {found.evidence}")
    if not probed.differences:
        terminal.note(f"it requires what the row {rule.id} says")
    if probed.inherited:
        terminal.note(f"not probed, taken from {rule.id}: {', '.join(probed.inherited)}")
    terminal.note()


def _plain(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _text(prepared: Prepared, result: Result) -> str:
    """What a rule file needs: the row, and the endpoint where that is new."""
    from thinkback.turn.probing.toml import endpoint_text

    return result.text if prepared.made is None else f"{endpoint_text(prepared.made)}\n{result.text}"


def _as_json(prepared: Prepared, result: Result, saved: str) -> dict[str, Any]:
    import msgspec

    probed = result.probed
    return {
        "endpoint": prepared.target.endpoint.id,
        "base_url": prepared.target.base_url,
        "model": prepared.target.model,
        "outcomes": [
            {**msgspec.structs.asdict(outcome), "text": _shown(outcome)}
            for outcome in result.findings.outcomes.values()
        ],
        "row": {key.name: key.value for key in probed.keys},
        "evidence": {key.name: key.evidence for key in probed.keys},
        "compared_with": prepared.target.rule.id,
        "known": prepared.known,
        "differences": [found._asdict() for found in probed.differences],
        "not_probed": list(probed.inherited),
        "toml": _text(prepared, result),
        "saved": saved or None,
    }
