"""The decision table: what of earlier reasoning a request carries, block by block, by which rule, and why."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from thinkback.cli import terminal

if TYPE_CHECKING:
    from thinkback.model.plan import Control
    from thinkback.model.rule import Endpoint, Rule
    from thinkback.model.target import Target
    from thinkback.turn.plan import Plan

# How a decision looks: what goes, what stands in, what the provider has anyway, what stays away.
_STYLES: Mapping[str, terminal.Style] = {"drop": "yellow", "placeholder": "cyan", "dummy": "cyan", "server": "dim"}
_SAID = {"emitted": "sent", "represented": "sent another way"}
_HEADINGS = ("block", "kind", "action", "message", "characters", "rule")
_RIGHT = (3, 4)
NO_PAGE = " (no public page known)"
_PAGE = re.compile(r"https?://|\b[a-z0-9-]+(\.[a-z0-9-]+)*\.[a-z]+/\S")


def rule_text(target: Target) -> str:
    """The rule row of a target, with a mark where it was guessed or says what nobody has confirmed."""
    guessed = " (guessed)" if target.guessed else ""
    return f"rule {target.rule.id}{guessed}" + (", in part unconfirmed" if target.rule.unconfirmed else "")


def target_lines(target: Target) -> list[str]:
    """Address and rule row of a target, what nobody has confirmed of it, and where its facts can be read."""
    from thinkback.rules.updates import origin

    lines = [f"{target.base_url}, {rule_text(target)}"]
    if update := origin(target.rule.source)[1]:
        lines.append(terminal.wrap(f"from the rule update of {update}", 2))
    if target.rule.unconfirmed:
        lines += (terminal.wrap(f"unconfirmed: {key}: {text}", 2) for key, text in target.rule.unconfirmed.items())
        lines.append(f"  to find out: thinkback probe {target.endpoint.id} --model {target.model}")
    lines.append(terminal.wrap(source_line(target.endpoint, target.rule), 2))
    return lines


def source_line(endpoint: Endpoint, rule: Rule) -> str:
    """Where a reader can check what a row says: the provider's own page, else the row's source; with the row's date."""
    from thinkback.rules.updates import origin

    if endpoint.docs:
        return f"documentation: {endpoint.docs} (row of {rule.since})"
    return f"source: {origin(rule.source)[0]}{'' if is_public(endpoint, rule) else NO_PAGE} (row of {rule.since})"


def is_public(endpoint: Endpoint, rule: Rule) -> bool:
    """Whether the endpoint or the source of the row names a page that anybody can open."""
    return bool(endpoint.docs or _PAGE.search(rule.source))


def decision_lines(plan: Plan, pen: terminal.Pen) -> list[str]:
    """The table, two lines per decision, the second with the reason; then what the provider reported, the counts and
    what became of each control."""
    rows = [
        (
            terminal.short(decision.block) or "-",
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
        indent = terminal.SHORT_HASH + 2 if terminal.width() >= terminal.NARROW else 2
        lines.append(pen(heading, "dim"))
        for line, decision in zip(body, plan.decisions, strict=True):
            reported = f"; the provider reported: {decision.reported}" if decision.reported else ""
            lines.append(pen(line, _STYLES.get(decision.action, "green")))
            lines.append(terminal.wrap(decision.reason + reported, indent))
    else:
        lines.append("No earlier reasoning: nothing to decide.")
    told = [*_sums(plan), *_reported(plan), _tokens(plan), *_cached(plan), *map(control_line, plan.controls)]
    return [*lines, *map(terminal.wrap, told)]


def _sums(plan: Plan) -> Iterator[str]:
    """How many decisions of each kind, and what is not sent because the provider has it."""
    actions = Counter(decision.action for decision in plan.decisions)
    if len(actions) > 1:
        yield "decisions: " + ", ".join(f"{count} {action}" for action, count in actions.items())
    if plan.kept:
        yield f"the provider keeps the conversation up to response {plan.kept}; only what follows is sent"


def _reported(plan: Plan) -> Iterator[str]:
    """What the provider said it did; what is about a decision stands beside it."""
    beside = {decision.reported for decision in plan.decisions}
    for where, what in plan.report.removed:
        if what not in beside:
            yield f"the provider reported: {where or 'an item'}: {what}"
    for edit in plan.report.edits:
        yield f"the provider reported: {edit}"


def _tokens(plan: Plan) -> str:
    counts = plan.counts
    limit = str(counts.limit) if counts.limit else "unknown"
    basis = "calibrated by the provider's usage" if counts.calibrated else "from characters alone"
    return (
        f"tokens, estimated {basis}: raw {counts.raw} (stored), effective {counts.effective} (sent), "
        f"{counts.effective_reasoning} of them reasoning; limit {limit}"
    )


def _cached(plan: Plan) -> Iterator[str]:
    """What the request read of the provider's prompt cache, and missed."""
    from thinkback.turn.prompt_cache import cache_use, told

    said = told(cache_use(plan))
    if said:
        yield said


def control_line(control: Control) -> str:
    """What became of a control that was asked for."""
    reason = f": {control.reason}" if control.reason else ""
    state = "" if control.state in _SAID else f" ({control.state})"
    return f"{_SAID.get(control.state, 'not sent')}: {control.key} = {control.value}{reason}{state}"


def as_json(plan: Plan) -> dict[str, Any]:
    """The same for programs."""
    import msgspec

    from thinkback.turn.prompt_cache import cache_use

    target, cache = plan.target, cache_use(plan)
    return {
        "endpoint": target.endpoint.id,
        "base_url": target.base_url,
        "model": target.model,
        "rule": target.rule.id,
        "guessed": target.guessed,
        "rule_source": target.rule.source,
        "docs": target.endpoint.docs or None,
        "unconfirmed": target.rule.unconfirmed,
        "messages": len(plan.messages),
        "decisions": [msgspec.structs.asdict(decision) for decision in plan.decisions],
        "counts": msgspec.structs.asdict(plan.counts),
        "cache": {"read": cache.read, "missed": cache.missed, "collapse": cache.cause or None},
        "kept": plan.kept or None,
        "not_found": plan.remarks.get("not_found"),
        "report": {"removed": [list(entry) for entry in plan.report.removed], "edits": list(plan.report.edits)},
        "controls": [msgspec.structs.asdict(control) for control in plan.controls],
        "dropped": [msgspec.structs.asdict(dropped) for dropped in plan.dropped],
    }
