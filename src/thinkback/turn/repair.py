"""Repair of a refused request: which reasoning to touch next, strictly further down each time (DESIGN 3.11)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, TypeAlias

from thinkback.model.commits import Commit, Failure, Repair, Response
from thinkback.model.target import Decision
from thinkback.turn.plan import Plan

Stage: TypeAlias = Literal["restore", "server_drop", "block", "older_turns", "all"]
STAGES: tuple[Stage, ...] = ("restore", "server_drop", "block", "older_turns", "all")
MAX_REPAIRS = 3
STATUSES = frozenset({400, 403, 422})

# Texts about reasoning that hosts share; a rule row adds its own (``refusals``).
_MISSING = r"must be passed back|reasoning_content is missing|without its (required|preceding) reasoning"
_COMMON = (
    r"reasoning(_content|_details|_text)?['\"`]? is (unsupported|not supported|not permitted)",
    r"(unknown|unrecognized|unexpected|extra)[^.]{0,80}reasoning",
    r"reasoning(_content|_details)[^.]{0,80}(extra|forbidden|not permitted|not allowed|unexpected|unknown)",
    r"extra inputs are not permitted",
    r"invalid[^.]{0,20}(signature|encrypted_content)",
    r"could not decrypt",
    r"corrupted thought signature",
)
_INDEX = re.compile(r"(?:messages?[.\[ ]+|at index )(\d+)")


def next_repair(plan: Plan, failure: Failure, commits: Sequence[Commit], last: Stage | None) -> Repair | None:
    """The next repair of ``plan`` after ``failure``, or ``None`` when the refusal is not about reasoning."""
    text = f"{failure.message} {failure.upstream}"
    if failure.status not in STATUSES or not _is_known(text, plan):
        return None
    sent = [decision for decision in plan.decisions if decision.message >= 0]
    missing = re.search(_MISSING, text, re.IGNORECASE) is not None
    for stage in STAGES[STAGES.index(last) + 1 if last else 0 :]:
        if stage == "restore" and not missing:
            continue
        if stage == "server_drop" and plan.target.rule.server_drop is None:
            continue
        blocks = _blocks(stage, text, plan, sent, commits)
        if blocks or stage in ("restore", "server_drop"):
            return Repair(stage, blocks, failure.message, plan.target.base_url, plan.target.model)
    return None


def _is_known(text: str, plan: Plan) -> bool:
    patterns = (*plan.target.rule.refusals, _MISSING, *_COMMON)
    return any(re.search(pattern, text, re.IGNORECASE) for pattern in patterns)


def _blocks(
    stage: Stage, text: str, plan: Plan, sent: list[Decision], commits: Sequence[Commit]
) -> tuple[str, ...]:
    """Hashes of the blocks a stage voids, among those that were sent with their own reasoning."""
    own = [decision for decision in sent if decision.action != "placeholder"]
    match stage:
        case "block":
            named = _INDEX.search(text)
            if named is None:
                return ()
            at = int(named.group(1))
            origins = _origins(commits)
            faulty = {origins.get(d.block) for d in own if d.message == at}
            chosen = [d for d in own if d.message == at or (faulty - {None} and origins.get(d.block) in faulty)]
        case "older_turns":
            users = [at for at, message in enumerate(plan.messages) if message.startswith(b'{"role":"user"')]
            chosen = [d for d in own if d.message < (users[-1] if users else 0)]
        case "all":
            chosen = own
        case _:
            chosen = []
    return tuple(dict.fromkeys(decision.block for decision in chosen))


def _origins(commits: Sequence[Commit]) -> dict[str, tuple[str, str]]:
    """Block hash to (endpoint, model) that minted it."""
    minted: dict[str, tuple[str, str]] = {}
    found: dict[str, tuple[str, str]] = {}
    for commit in commits:
        if isinstance(commit.value, Response):
            minted[commit.response] = (commit.value.origin.endpoint, commit.value.origin.requested_model)
        elif commit.response in minted:
            found[commit.hash] = minted[commit.response]
    return found
