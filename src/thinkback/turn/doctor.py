"""What stands between a history and the next request to a target, and what would mend it. Decides, writes nothing.

Two things can be mended by appending: blocks that this target can never read are declared void for it, so that no
request depends on them, and calls without a result get one that says so. All else is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias, TypeGuard

import msgspec

from thinkback.compile import guard, translate
from thinkback.compile.grouping import Grouper
from thinkback.errors import ThinkbackError
from thinkback.model.blocks import ToolCall, ToolResult
from thinkback.model.commits import Commit, Draft, Repair, Response
from thinkback.model.target import WITHHELD, Decision, Settings, Target
from thinkback.turn import orphans
from thinkback.turn.orphans import OpenCall
from thinkback.turn.plan import History
from thinkback.wire.registry import dialect

FOUND = "found before a request was made"
"""What stands for the refusal in a repair that no provider asked for."""

FindingKind: TypeAlias = Literal[
    "refused", "order", "unreadable", "call", "result", "dropped", "stand-in", "address", "key"
]


class Finding(msgspec.Struct, frozen=True):
    """One thing about the next request.

    ``refused``: it would not be sent; ``order``: the provider would refuse the history; ``unreadable``: a block that
    this target cannot read; ``call``: a call without a result; ``result``: a result without a call; ``dropped``: a
    block that settings or rule leave out; ``stand-in``: something goes in place of what is missing; ``address`` and
    ``key``: nobody answers there, or not to this key. ``block`` is the hash of the commit, where there is one,
    ``remedy`` what mends it.
    """

    kind: FindingKind
    text: str
    block: str = ""
    remedy: Literal["", "void", "close"] = ""

    @property
    def wrong(self) -> bool:
        """Whether it should not stay so; the rest is how things are meant to be."""
        return self.remedy != "" or self.kind in ("refused", "order", "address", "key")


class Examination(NamedTuple):
    """What was found, and the commits that mend what can be mended."""

    findings: tuple[Finding, ...]
    drafts: tuple[Draft, ...]


def examine(commits: Sequence[Commit], target: Target, settings: Settings) -> Examination:
    """The next request to ``target`` after ``commits``, without sending it."""
    findings = [*_order(commits, target)]
    void: dict[str, None] = {}
    try:
        decisions = History(commits).plan(target, settings, None, {}).decisions
    except ThinkbackError as error:
        findings.append(Finding("refused", error.message))
    else:
        void = dict.fromkeys(_unreadable(commits, target, settings, decisions))
        findings += _decision_findings(decisions, void)
    calls = list(_orphan_calls(commits))
    findings += [Finding("call", f"{call.call.name} has no result", hash, "close") for hash, call in calls]
    findings += _stray_results(commits)
    drafts: list[Draft] = []
    if void:
        drafts.append(Draft("repair", Repair("block", tuple(void), FOUND, target.base_url, target.model)))
    drafts += [orphans.interrupted(call) for _, call in calls]
    if orphans.open_calls(commits):
        drafts += [draft for draft in orphans.closing_drafts(commits) if draft.kind == "turn_ended"]
    return Examination(tuple(findings), tuple(drafts))


def _order(commits: Sequence[Commit], target: Target) -> Iterator[Finding]:
    first = next((commit for commit in commits if commit.kind in ("user", "response")), None)
    if first is not None and first.kind == "response" and dialect(target.endpoint.dialect).writer.alternates:
        yield Finding(
            "order",
            "an answer stands first, and hosts of alternating roles refuse what does not begin with the user",
            first.hash,
        )


def _decision_findings(decisions: Sequence[Decision], void: dict[str, None]) -> list[Finding]:
    """A finding per block that does not go as it came, and per stand-in."""
    found: dict[tuple[str, str], list[str]] = {}
    for decision in decisions:
        if decision.action in WITHHELD:
            found.setdefault((decision.block, decision.reason), []).append(decision.what)
    findings: list[Finding] = []
    for (block, reason), whats in found.items():
        text = f"{', '.join(dict.fromkeys(whats))}: {reason}"
        if block in void:
            findings.append(Finding("unreadable", text, block, "void"))
        else:
            stands_in = any(d.block == block and d.reason == reason and d.action != "drop" for d in decisions)
            findings.append(Finding("stand-in" if stands_in else "dropped", text, block))
    return findings


def _unreadable(
    commits: Sequence[Commit], target: Target, settings: Settings, decisions: Sequence[Decision]
) -> Iterator[str]:
    """Hashes of the blocks of which nothing goes, because the target cannot read them, and that are not void yet."""
    known = {hash for commit in commits if _holds(commit.value, target) for hash in commit.value.blocks}
    sent = {decision.block for decision in decisions if decision.action != "drop"}
    dropped = {decision.block: None for decision in decisions if decision.action == "drop" and decision.block}
    bound = set(dropped) & _goes_unbound(commits, target, settings)
    origins = {c.response: c.value.origin for c in commits if isinstance(c.value, Response) and c.value.complete}
    of_block = {commit.hash: origins.get(commit.response) for commit in commits}
    for block in dropped:
        origin = of_block[block]
        if block in known or block in sent or origin is None:
            continue
        # Whoever sends the request says for which end user it is; here nobody does.
        if block in bound or not guard.check(origin, target, origin.end_user).carriers:
            yield block


def _holds(value: object, target: Target) -> TypeGuard[Repair]:
    return isinstance(value, Repair) and (value.endpoint, value.model) == (target.base_url, target.model)


def _goes_unbound(commits: Sequence[Commit], target: Target, settings: Settings) -> set[str]:
    """The blocks that would go if nothing were bound to its prefix."""
    if not target.rule.prefix_bound:
        return set()
    free = msgspec.structs.replace(target, rule=msgspec.structs.replace(target.rule, prefix_bound=False))
    plan = History(commits).plan(free, settings, None, {})
    return {decision.block for decision in plan.decisions if decision.action != "drop"}


def _orphan_calls(commits: Sequence[Commit]) -> Iterator[tuple[str, OpenCall]]:
    """(hash, call) of every call without a result that goes back to a provider."""
    grouper = Grouper()
    grouper.take(commits)
    for unit in (unit for turn in grouper.turns for unit in turn.responses if not unit.withheld):
        hashes = [hash for hash, block in zip(unit.hashes, unit.blocks, strict=True) if isinstance(block, ToolCall)]
        for hash, call, answer in zip(hashes, unit.calls, translate.answers_of(unit), strict=True):
            if answer not in unit.results:
                yield hash, OpenCall(call, unit.response)


def _stray_results(commits: Sequence[Commit]) -> Iterator[Finding]:
    calls = {commit.value.id for commit in commits if isinstance(commit.value, ToolCall)}
    responses = {commit.response for commit in commits if commit.kind == "response"}
    for commit in commits:
        value = commit.value
        if isinstance(value, ToolResult) and value.id not in calls and commit.response not in responses:
            yield Finding("result", f"the result for {value.id} answers no call, so it is not sent", commit.hash)
