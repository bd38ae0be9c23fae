"""What of earlier reasoning a request carries, and why: in sentences, then block by block as a table."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from thinkback.cli import terminal

if TYPE_CHECKING:
    from thinkback.model.plan import Control, Counts
    from thinkback.model.rule import Endpoint, Rule
    from thinkback.model.target import Decision, Target
    from thinkback.turn.plan import Plan

# How a decision looks: what goes, what stands in, what the provider has anyway, what stays away.
_STYLES: Mapping[str, terminal.Style] = {"drop": "yellow", "placeholder": "cyan", "dummy": "cyan", "server": "dim"}
# What becomes of a block by the best of its decisions, with what is said of it after and before the request is sent.
_FATES: Mapping[str, tuple[frozenset[str], tuple[str, str]]] = {
    "back": (frozenset({"native", "field", "tags"}), ("went back", "will go back")),
    "text": (frozenset({"summary", "text"}), ("went back as plain text", "will go back as plain text")),
    "kept": (frozenset({"server"}), ("was not sent again", "is not sent again")),
    "away": (frozenset({"drop"}), ("did not go back", "will not go back")),
}
_RANK = {action: rank for rank, (actions, _) in enumerate(_FATES.values()) for action in actions}
_OPAQUE = frozenset({"signature", "encrypted", "redacted", "thought_signature"})
_FORM = re.compile(r"^(?:entry )?goes back [^:]*: | \(rule [^()]*(?:\([^()]*\))?\)")
_SAID = {"emitted": "sent", "represented": "sent another way"}
_HEADINGS = ("block", "kind", "action", "message", "characters", "rule")
_RIGHT = (3, 4)
_REASONS = 2
"""Reasons that a sentence names."""
NO_PAGE = "no public page known"
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
    page = "" if is_public(endpoint, rule) else f"{NO_PAGE}; "
    return f"source: {origin(rule.source)[0]} ({page}row of {rule.since})"


def is_public(endpoint: Endpoint, rule: Rule) -> bool:
    """Whether the endpoint or the source of the row names a page that anybody can open."""
    return bool(endpoint.docs or _PAGE.search(rule.source))


def opening(plan: Plan, *, is_next: bool) -> str:
    """How much of earlier reasoning goes back, how much does not, and why: sentences, of the decisions alone."""
    tense, would = (1, "will stand") if is_next else (0, "stood")
    decisions = plan.decisions
    about = [decision for decision in decisions if decision.block and decision.what in {"reasoning", *_OPAQUE}]
    blocks: dict[str, list[Decision]] = {}
    for decision in about:
        blocks.setdefault(decision.block, []).append(decision)
    # of the decisions about a block the one that says most of it goes
    best = [min(each, key=lambda decision: _RANK[decision.action]) for each in blocks.values()]
    told: list[str] = []
    total = len(blocks)
    for fate, (actions, verbs) in _FATES.items():
        found = [decision for decision in best if decision.action in actions]
        if not found:
            continue
        subject, verb = _subject(len(found), total, bool(told)), verbs[tense]
        if fate == "away" and len(found) == total > 1:
            subject, verb = f"None of the {total} blocks of earlier reasoning", _FATES["back"][1][tense]
        bare = sum(_is_bare(blocks[decision.block]) for decision in found) if fate == "back" else 0
        without = f" ({bare} without the signature or encrypted part)" if bare else ""
        told.append(f"{subject} {verb}{without}: {_reasons(found)}.")
    if not total:
        told.append(f"There {'is' if is_next else 'was'} no earlier reasoning that could go back.")
    stand_ins = sum(decision.action in ("placeholder", "dummy") for decision in decisions)
    if stand_ins:
        where = terminal.plural(stand_ins, "place")
        told.append(f"In {where} a placeholder {would} in for reasoning that the endpoint demands.")
    reported = Counter({decision.block: decision.reported for decision in about if decision.reported}.values())
    for what, count in reported.items():
        told.append(f"The provider reported of {'it' if count == total == 1 else f'{count} of them'}: {what}.")
    return " ".join(told)


def _subject(count: int, total: int, is_named: bool) -> str:
    if is_named:
        return f"{count} of them"
    if count == total:
        return "The one block of earlier reasoning" if total == 1 else f"All {total} blocks of earlier reasoning"
    return f"{count} of {total} blocks of earlier reasoning"


def _is_bare(decisions: Sequence[Decision]) -> bool:
    """Whether something opaque of a block does not go."""
    return any(decision.action == "drop" and decision.what in _OPAQUE for decision in decisions)


def _reasons(decisions: Sequence[Decision]) -> str:
    """Why, the commonest reasons first; how it goes and by which rule stands in the table."""
    counts = Counter(_plain(decision.reason) for decision in decisions).most_common()
    if len(counts) == 1:
        return counts[0][0]
    told = [f"{reason} ({count})" for reason, count in counts[:_REASONS]]
    return "; ".join([*told, *(["others below"] if len(counts) > _REASONS else [])])


def _plain(reason: str) -> str:
    told = _FORM.sub("", reason).replace("goes back inside its block", "it belongs to what was said or called")
    return re.sub("^minted ", "it was written ", told).replace(", target ", ", and the target ")


def size_line(counts: Counts, subject: str) -> str:
    """How large a request is, in the one word that is used for it everywhere; and the log, where that differs."""
    limit = f" of {counts.limit:,}" if counts.limit else ""
    limit += f" (the server's word of {counts.limit_asked})" if counts.limit_asked else ""
    stored = f"; stored: {about_tokens(counts.raw)}" if counts.raw > counts.effective else ""
    basis = "from the last input that the provider counted" if counts.calibrated else "from the length of the text"
    reasoning = f", about {counts.effective_reasoning:,} of them reasoning" if counts.effective_reasoning else ""
    return f"{subject}: {about_tokens(counts.effective)}{limit}{reasoning}{stored} (estimated {basis})"


def about_tokens(count: int) -> str:
    """A number of tokens that nobody counted."""
    return f"about {count:,} {'token' if count == 1 else 'tokens'}"


def decision_lines(plan: Plan, pen: terminal.Pen) -> list[str]:
    """The table, below each decision its reason, or below all of them the one that all have; then what the provider
    reported, the counts and what became of each control.
    """
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
        reasons = [_reason_of(decision) for decision in plan.decisions]
        is_one = len(reasons) > 1 and len(set(reasons)) == 1
        for line, decision, reason in zip(body, plan.decisions, reasons, strict=True):
            lines.append(pen(line, _STYLES.get(decision.action, "green")))
            if not is_one:
                lines.append(terminal.wrap(reason, indent))
        if is_one:
            lines.append(terminal.wrap(f"each of them: {reasons[0]}", indent))
    size = size_line(plan.counts, "size of the request")
    told = [*_sums(plan), *_reported(plan), size, *_cached(plan), *map(control_line, plan.controls)]
    return [*lines, *map(terminal.wrap, told)]


def _reason_of(decision: Decision) -> str:
    return decision.reason + (f"; the provider reported: {decision.reported}" if decision.reported else "")


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
        "chosen": plan.remarks.get("chosen"),
        "not_found": plan.remarks.get("not_found"),
        "left_out": plan.remarks.get("left_out"),
        "report": {"removed": [list(entry) for entry in plan.report.removed], "edits": list(plan.report.edits)},
        "controls": [msgspec.structs.asdict(control) for control in plan.controls],
        "dropped": [msgspec.structs.asdict(dropped) for dropped in plan.dropped],
    }
