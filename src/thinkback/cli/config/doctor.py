"""``doctor``: what stands between a session and its next request, and the mending of what can be mended."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from thinkback.cli import exits, terminal
from thinkback.cli.decisions import target_lines
from thinkback.cli.options import (
    DIALECTS,
    busy_options,
    chosen,
    db_option,
    existing_log,
    json_option,
    opened,
    place_in,
    place_options,
    session_argument,
)
from thinkback.cli.referee import ENDPOINT
from thinkback.session.destination import check_destination, destination_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from thinkback.log.protocol import SessionInfo, Store
    from thinkback.model.commits import Commit
    from thinkback.session.session import Session
    from thinkback.turn.doctor import Examination, Finding

_REMEDIES = {"void": "declare it void for this target", "close": "record that it was interrupted"}
_HELP = f"""\
Check the next request of SESSION, and repair what can be repaired.

Each repair is reported before it is made; --dry-run only reports. Blocks that the target can never read are marked void
for it, and tool calls without a result get one. An empty request, which costs nothing, checks the address and the key;
--offline leaves it out. Endpoint and model default to those of the last request. The exit code is 0 if nothing was
wrong, else 1, even after a repair.

With --report, print a report to attach to an issue instead: versions, names of the settings in use, sizes, the last
failures. It contains no value, key, path, address, name of your own, or text of a conversation.

{DIALECTS}
"""


@click.command("doctor", short_help="Check the next request of a session, and repair it.", help=_HELP)
@session_argument
@click.option("--dry-run", is_flag=True, help="Report the repairs, and make none.")
@click.option("--offline", is_flag=True, help="Send nothing: do not check the address and the key.")
@click.option(
    "--report", "reports", is_flag=True, help="Print a report to attach to an issue; sends and changes nothing."
)
@place_options
@busy_options
@db_option
@json_option
def doctor_command(
    session: str, dry_run: bool, offline: bool, reports: bool, as_json: bool, db: str, **given: Any
) -> None:
    """Examine, tell, mend."""
    if reports:
        from thinkback.cli.config.report import print_report, report

        told = report(db)
        (terminal.print_json if as_json else print_report)(told)
        return
    from thinkback.turn.doctor import examine

    with existing_log(db) as store:
        info = chosen(store, session)
        place = place_in(given)
        place = destination_of(store, info, store.commits(info.id), place)
        check_destination(place, store.rulebook)
        open_session = opened(store, info.name, place)
        if not dry_run:
            open_session.conversation.line.refuse_leased()
        commits = open_session.log()
        found = examine(commits, open_session.target, open_session.settings)
        # the referee of a command ends with it, and the next one starts its own
        is_there = place.endpoint != ENDPOINT or given["base_url"]
        if is_there and not offline and (fault := _unreached(open_session)) is not None:
            found = found._replace(findings=(*found.findings, fault))
        if not as_json:
            _print(open_session, found)
        mended = bool(found.drafts) and not dry_run
        if mended:
            _write(store.log, info, commits, found)
        if as_json:
            terminal.print_json(_as_json(open_session, found, mended))
        elif found.drafts:
            terminal.out("mended" if mended else "nothing was changed: --dry-run")
    if any(finding.wrong for finding in found.findings):
        sys.exit(exits.FAILED)


def _unreached(session: Session) -> Finding | None:
    from thinkback.session.reaching import unreached

    now = session.conversation.configure()
    return unreached(now.place, session.target, session.settings, now.rules)


def _write(log: Store, info: SessionInfo, commits: Sequence[Commit], found: Examination) -> None:
    """Append the mending behind what was examined. Raises ``HeadMovedError`` where somebody wrote in between."""
    from thinkback.drive.clock import now
    from thinkback.log.seal import head_of, seal
    from thinkback.model.commits import Step
    from thinkback.session.ids import new_id

    head = head_of(commits)
    step = Step(new_id(), found.drafts, now())
    log.append(info.id, step.id, seal(step, head), head, info.branch)


def _print(session: Session, found: Examination) -> None:
    pen = terminal.pen(sys.stdout)
    target = session.target
    terminal.out(pen(f"session {session.name}, next request: {target.endpoint.id} {target.model}", "bold"))
    for line in target_lines(target):
        terminal.out(pen(line, "dim"))
    for finding in found.findings:
        _print_finding(finding, pen)
    if not any(finding.wrong for finding in found.findings):
        terminal.out("nothing is wrong")


def _print_finding(finding: Finding, pen: terminal.Pen) -> None:
    style: terminal.Style = "red" if finding.wrong else "dim"
    block = f" {terminal.short(finding.block)}" if finding.block else ""
    terminal.out(pen(terminal.wrap(f"{finding.kind}{block}: {finding.text}"), style))
    if finding.remedy:
        terminal.out(terminal.wrap(f"would {_REMEDIES[finding.remedy]}", 2))


def _as_json(session: Session, found: Examination, mended: bool) -> dict[str, Any]:
    import msgspec

    target = session.target
    return {
        "session": session.name,
        "endpoint": target.endpoint.id,
        "model": target.model,
        "rule": target.rule.id,
        "guessed": target.guessed,
        "unconfirmed": target.rule.unconfirmed,
        "findings": [{**msgspec.structs.asdict(finding), "wrong": finding.wrong} for finding in found.findings],
        "wrong": any(finding.wrong for finding in found.findings),
        "mended": mended,
    }
