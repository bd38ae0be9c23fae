"""The decision table: what of earlier reasoning a request carries, block by block, by which rule, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from thinkback.cli import terminal

if TYPE_CHECKING:
    from thinkback.turn.plan import Plan

SHORT_HASH = 8
_HEADINGS = ("block", "kind", "action", "message", "characters", "rule")
_RIGHT = (3, 4)


def decision_lines(plan: Plan, pen: terminal.Pen) -> list[str]:
    """The table, two lines per decision, the second with the reason; then the counts and the controls left out."""
    rows = [
        (
            decision.block[:SHORT_HASH] or "-",
            decision.what,
            decision.action,
            str(decision.message) if decision.message >= 0 else "-",
            str(decision.characters) if decision.characters else "-",
            decision.rule + (" (guessed)" if decision.guessed else ""),
        )
        for decision in plan.decisions
    ]
    lines = []
    if rows:
        heading, *body = terminal.table([_HEADINGS, *rows], _RIGHT)
        lines.append(pen(heading, "dim"))
        for line, decision in zip(body, plan.decisions, strict=True):
            reported = f"; the provider reported: {decision.reported}" if decision.reported else ""
            style: terminal.Style = "yellow" if decision.action == "drop" else "green"
            lines.append(pen(line, style))
            lines.append(terminal.wrap(decision.reason + reported, SHORT_HASH + 2))
    else:
        lines.append("No earlier reasoning: nothing to decide.")
    return [*lines, *count_lines(plan)]


def count_lines(plan: Plan) -> list[str]:
    """Estimated tokens, and the controls that could not be sent."""
    counts = plan.counts
    limit = str(counts.limit) if counts.limit else "unknown"
    basis = "calibrated by the provider's usage" if counts.calibrated else "from characters alone"
    tokens = (
        f"tokens, estimated {basis}: raw {counts.raw} (stored), effective {counts.effective} (sent), "
        f"{counts.effective_reasoning} of them reasoning; limit {limit}"
    )
    controls = [f"not sent: {gone.key} = {gone.value}: {gone.reason}" for gone in plan.dropped]
    return [terminal.wrap(line) for line in (tokens, *controls)]


def as_json(plan: Plan) -> dict[str, Any]:
    """The same for programs."""
    import msgspec

    target = plan.target
    return {
        "endpoint": target.endpoint.id,
        "base_url": target.base_url,
        "model": target.model,
        "rule": target.rule.id,
        "guessed": target.guessed,
        "messages": len(plan.messages),
        "decisions": [msgspec.structs.asdict(decision) for decision in plan.decisions],
        "counts": msgspec.structs.asdict(plan.counts),
        "dropped": [msgspec.structs.asdict(dropped) for dropped in plan.dropped],
    }
