"""Repair of a refused request: which reasoning to touch next, strictly further down each time (DESIGN 3.11)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, TypeAlias, TypeGuard

from thinkback.model.blocks import Carrier
from thinkback.model.commits import Commit, Failure, Repair, Response
from thinkback.model.target import Decision
from thinkback.turn.plan import Plan

Stage: TypeAlias = Literal["server_state", "restore", "server_drop", "block", "older_turns", "all"]
STAGES: tuple[Stage, ...] = ("server_state", "restore", "server_drop", "block", "older_turns", "all")
MAX_REPAIRS = 3
STATUSES = frozenset({400, 403, 422})
# Stages that say something about the whole request: once they hold for a target, a second time changes nothing.
_LASTING = frozenset({"server_state", "restore", "server_drop"})

# Texts about reasoning that hosts share; a rule row adds its own (``refusals``).
_MISSING = (
    r"must be passed back|reasoning_content is missing|without its (required|preceding) reasoning"
    r"|is missing a thought_signature|must start with a thinking block"
)
_STORED = r"\brs_\w+"
_BOUND = r"bound to a different conversation"
_FORGOTTEN = r"\b(response|interaction)\b.{0,80}(not found|expired|does not exist|invalid)|previous_interaction_id"
_COMMON = (
    r"reasoning(_content|_details|_text)?['\"`]? is (unsupported|not supported|not permitted)",
    r"(unknown|unrecognized|unexpected|extra)([^.]|\.(?=\S)){0,80}reasoning",
    r"reasoning(_content|_details|_text)?\b[^.]{0,80}(extra|forbidden|not permitted|not allowed|unexpected|unknown)",
    r"invalid[^.]{0,20}(signature|encrypted_content)",
    r"could not (decrypt|be verified)",
    r"thought.?signature",
    r"cannot contain reasoning",
    _STORED,
    _BOUND,
)
_INDEX = re.compile(r"(?:(?:messages?|input|contents)(?:[.\[ ]+|\",\s*)|at index )(\d+)(?:\.content\.(\d+))?")
_ITEM = re.compile(r"\b(?:rs|fc|msg|ws|ctc|item)_[\w-]*\w")


def next_repair(plan: Plan, failure: Failure, commits: Sequence[Commit]) -> Repair | None:
    """The next repair of ``plan`` after ``failure``, or ``None`` when there is none or the refusal is not about
    reasoning. What was tried before is read from ``commits``, so that it holds across processes."""
    text = f"{failure.message} {failure.upstream}"
    if not _is_known(text, failure.status, plan):
        return None
    made = _made_this_turn(plan, commits)
    if len(made) >= MAX_REPAIRS:
        return None
    lasting = {commit.value.stage for commit in commits if _is_for(commit.value, plan)} & _LASTING
    for stage in STAGES[STAGES.index(made[-1].stage) + 1 if made else 0 :]:
        if stage in lasting or not _can_help(stage, text, plan):
            continue
        blocks = _blocks(stage, text, plan, commits)
        if blocks or stage in _LASTING:
            return Repair(stage, blocks, failure.message, plan.target.base_url, plan.target.model)
    return None


def _can_help(stage: Stage, text: str, plan: Plan) -> bool:
    """Whether a stage that is about the whole request has to do with the refusal."""
    match stage:
        case "server_state":
            return plan.kept != ""
        case "restore":
            return re.search(_MISSING, text, re.IGNORECASE) is not None
        case "server_drop":
            rule = plan.target.rule
            is_bound = re.search(_BOUND, text, re.IGNORECASE) is not None
            return rule.server_drop is not None and (is_bound or not rule.prefix_bound)
        case _:
            return True


def _is_known(text: str, status: int, plan: Plan) -> bool:
    """Whether the refusal is about reasoning; that an item or a response was not found comes as 404."""
    if plan.kept and status in (404, *STATUSES) and re.search(_FORGOTTEN, text, re.IGNORECASE):
        return True
    if status == 404:
        return re.search(_STORED, text, re.IGNORECASE) is not None
    if status not in STATUSES:
        return False
    patterns = (*plan.target.rule.refusals, _MISSING, *_COMMON)
    return any(re.search(pattern, text, re.IGNORECASE) for pattern in patterns)


def _is_for(value: object, plan: Plan) -> TypeGuard[Repair]:
    target = plan.target
    return isinstance(value, Repair) and (value.endpoint, value.model) == (target.base_url, target.model)


def _made_this_turn(plan: Plan, commits: Sequence[Commit]) -> list[Repair]:
    """The repairs of the turn under way for this target, oldest first."""
    made: list[Repair] = []
    for commit in reversed(commits):
        if commit.kind in ("user", "turn_ended"):
            break
        if _is_for(commit.value, plan):
            made.append(commit.value)
    return made[::-1]


def _blocks(stage: Stage, text: str, plan: Plan, commits: Sequence[Commit]) -> tuple[str, ...]:
    """Hashes of the blocks a stage voids, among those that were sent with their own reasoning."""
    own = [found for found in plan.decisions if found.message >= 0 and found.action != "placeholder"]
    match stage:
        case "block":
            chosen = _named(text, own, plan, commits)
        case "older_turns":
            chosen = [decision for decision in own if decision.message < plan.open_at]
        case "all":
            chosen = own
        case _:
            chosen = []
    return tuple(dict.fromkeys(decision.block for decision in chosen))


def _named(text: str, own: list[Decision], plan: Plan, commits: Sequence[Commit]) -> list[Decision]:
    """What was sent on the message or item that ``text`` names; where a stranger minted it, all that is from there, and
    where it is bound to what stood before it, all that is bound to it."""
    for item in _ITEM.findall(text):
        responses = _responses_with(item, commits)
        chosen = [found for found in own if responses.get(found.block)]
        if chosen:
            return chosen
    named = _INDEX.search(text)
    if named is None:
        return []
    at = int(named.group(1))
    if re.search(_BOUND, text, re.IGNORECASE):
        return [found for found in own if found.message >= at]
    origins = _origins(commits)
    home = (plan.target.base_url, plan.target.model)
    strangers = {origins.get(found.block) for found in own if found.message == at} - {None, home}
    return [found for found in own if found.message == at or origins.get(found.block) in strangers]


def _responses_with(item: str, commits: Sequence[Commit]) -> dict[str, bool]:
    """The blocks of the response that an item id names."""
    named = {commit.response for commit in commits if item in map(_value, getattr(commit.value, "carriers", ()))}
    return {commit.hash: True for commit in commits if commit.response in named}


def _value(carrier: Carrier) -> str:
    return carrier.value


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
