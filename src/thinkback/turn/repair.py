"""Repair of a refused request: which reasoning to touch next, strictly further down each time.

Promise: the last attempt is a request that any endpoint takes, as far as reasoning goes: every response of the history
as text in the user's words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, TypeAlias, TypeGuard

from thinkback.model.blocks import Carrier, Media, Text, ToolCall, Unknown
from thinkback.model.commits import Commit, Content, Failure, Repair, Response
from thinkback.model.rule import stand_ins
from thinkback.model.target import Decision
from thinkback.turn.overflow import is_overflow
from thinkback.turn.plan import Plan

Stage: TypeAlias = Literal["server_state", "restore", "server_drop", "block", "older_turns", "all", "flatten"]
STAGES: tuple[Stage, ...] = ("server_state", "restore", "server_drop", "block", "older_turns", "all", "flatten")
MAX_REPAIRS = 3
STATUSES = frozenset({400, 403, 422})
# Stages that say something about the whole request: once they hold for a target, a second time changes nothing, but
# that a further ``restore`` takes the next step of the rule's ``missing`` list.
_LASTING = frozenset({"server_state", "restore", "server_drop"})

# Texts about reasoning that hosts share; a rule row adds its own (``refusals``).
_MISSING = (
    r"must be passed back|reasoning_content is missing|without its (required|preceding) reasoning"
    r"|is missing a thought_signature|must start with a thinking block"
)
_STORED = r"\brs_\w+"
_BOUND = r"bound to a different conversation"
_FORGOTTEN = r"\b(response|interaction)\b.{0,80}(not found|expired|does not exist|invalid)|previous_interaction_id"
# A field of a message: a parameter of the request has a longer name, or one with a point in it.
_FIELD = r"reasoning(_content|_details|_text|_opaque)?(?!\w|\.\w)"
_COMMON = (
    rf"{_FIELD}['\"`]? is (unsupported|not supported|not permitted|not a valid input item type)",
    rf"(unknown|unrecognized|unexpected|extra)([^.]|\.(?=\S)){{0,80}}{_FIELD}",
    rf"{_FIELD}[^.]{{0,80}}(extra|forbidden|not permitted|not allowed|unexpected|unknown)",
    r"invalid[^.]{0,20}(signature|encrypted_content)",
    r"could not (decrypt|be verified)",
    r"thought.?signature",
    r"cannot contain reasoning",
    _STORED,
    _BOUND,
)
_INDEX = r"(?:(?:messages?|input|contents)(?:[.\[ ]+|\",\s*)|at index |\bstep )(\d+)(?:\.content\.(\d+))?"
_ITEM = r"\b(?:rs|fc|msg|ws|ctc|cmp|item)_[\w-]*\w"
_PARAMETER = r"(?i)(?:parameter|argument)s?(?: supplied)?\W+(\w+)"


def next_repair(plan: Plan, failure: Failure, commits: Sequence[Commit]) -> Repair | None:
    """The next repair of ``plan`` after ``failure``, or ``None`` when there is none or the refusal is not about
    reasoning. What was tried before is read from ``commits``, so that it holds across processes."""
    text = f"{failure.message} {failure.upstream}"
    if not _is_known(text, failure.status, plan):
        return None
    made = _made_this_turn(plan, commits)
    if len(made) >= MAX_REPAIRS:
        return None
    holding = [commit.value.stage for commit in commits if _is_for(commit.value, plan)]
    first = STAGES.index(made[-1].stage) + (made[-1].stage != "restore") if made else 0
    for stage in STAGES[first:] if len(made) < MAX_REPAIRS - 1 else ("flatten",):
        if not _can_help(stage, text, plan, holding.count(stage)):
            continue
        blocks = _blocks(stage, text, plan, commits)
        if blocks or stage in _LASTING:
            return Repair(stage, blocks, failure.message, plan.target.base_url, plan.target.model)
    return None


def asks_too_much(plan: Plan, failure: Failure) -> bool:
    """Whether a refusal may be about what nobody asked for but the settings: the provider need not say so in words that
    are known, and may refuse it to one organisation alone.
    """
    return plan.unasked and failure.status in (400, 422) and not is_overflow(failure)


def _can_help(stage: Stage, text: str, plan: Plan, held: int) -> bool:
    """Whether a stage that is about the whole request, and holds so many times, has to do with the refusal."""
    rule = plan.target.rule
    match stage:
        case "server_state":
            return not held and plan.kept != ""
        case "restore":
            return is_missing_reasoning(text) and (not held or (held < len(stand_ins(rule)) and stands_in(plan)))
        case "server_drop":
            is_bound = re.search(_BOUND, text, re.IGNORECASE) is not None
            return not held and rule.server_drop is not None and (is_bound or not rule.prefix_bound)
        case "older_turns":
            named = re.search(_INDEX, text)
            return named is None or int(named.group(1)) < plan.open_at
        case _:
            return True


def stands_in(plan: Plan) -> bool:
    """Whether something was sent in the place of reasoning."""
    return any(decision.action in ("placeholder", "dummy") for decision in plan.decisions)


def _is_known(text: str, status: int, plan: Plan) -> bool:
    """Whether the refusal is about reasoning; that an item or a response was not found comes as 404."""
    if plan.kept and status in (404, *STATUSES) and re.search(_FORGOTTEN, text, re.IGNORECASE):
        return True
    refusals = plan.target.rule.refusals
    if status == 404:
        return any(re.search(pattern, text, re.IGNORECASE) for pattern in (*refusals, _STORED))
    return status in STATUSES and not _names_parameter(text, plan) and is_about_reasoning(text, refusals)


def is_about_reasoning(text: str, refusals: Sequence[str]) -> bool:
    """Whether a refusal says that it is about reasoning, in words that hosts share or in ``refusals`` of its own."""
    return any(re.search(pattern, text, re.IGNORECASE) for pattern in (*refusals, _MISSING, *_COMMON))


def is_missing_reasoning(text: str) -> bool:
    """Whether a refusal says that reasoning is missing which the host wants back."""
    return re.search(_MISSING, text, re.IGNORECASE) is not None


def _names_parameter(text: str, plan: Plan) -> bool:
    """Whether the refusal is about a parameter of this very request, which no other history mends."""
    named = re.search(_PARAMETER, text)
    return named is not None and named.group(1) in plan.params and re.search(_INDEX, text) is None


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
    if stage == "flatten":
        return _responses(plan, commits)
    own = [found for found in plan.decisions if found.message >= 0 and found.block and found.what != "text"]
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


def _responses(plan: Plan, commits: Sequence[Commit]) -> tuple[str, ...]:
    """The responses that do not go as text yet; what a person put into the assistant's mouth is one of its own."""
    flat = {
        hash
        for commit in commits
        if _is_for(commit.value, plan) and commit.value.stage == "flatten"
        for hash in commit.value.blocks
    }
    said = (commit for commit in commits if commit.kind == "response" or _is_by_hand(commit))
    return tuple(dict.fromkeys(commit.hash for commit in said if commit.hash not in flat))


def _is_by_hand(commit: Commit) -> bool:
    value = commit.value
    if isinstance(value, Content):
        return value.role == "assistant"
    return not commit.response and not commit.edit and isinstance(value, Text | ToolCall | Media | Unknown)


def _named(text: str, own: list[Decision], plan: Plan, commits: Sequence[Commit]) -> list[Decision]:
    """What was sent on the message or item that ``text`` names; where a stranger minted it, all that is from there, and
    where it is bound to what stood before it, all that is bound to it."""
    for item in re.findall(_ITEM, text):
        responses = _responses_with(item, commits)
        chosen = [found for found in own if responses.get(found.block)]
        if chosen:
            return chosen
    named = re.search(_INDEX, text)
    if named is None:
        return []
    at = int(named.group(1))
    if re.search(_BOUND, text, re.IGNORECASE):
        return [found for found in own if found.message >= at]
    origins = _origins(commits)
    home = (plan.target.base_url, plan.target.model, plan.target.account)
    strangers = {origins.get(found.block) for found in own if found.message == at} - {None, home}
    return [found for found in own if found.message == at or origins.get(found.block) in strangers]


def _responses_with(item: str, commits: Sequence[Commit]) -> dict[str, bool]:
    """The blocks of the response that an item id names."""
    named = {commit.response for commit in commits if item in map(_value, getattr(commit.value, "carriers", ()))}
    return {commit.hash: True for commit in commits if commit.response in named}


def _value(carrier: Carrier) -> str:
    return carrier.value


def _origins(commits: Sequence[Commit]) -> dict[str, tuple[str, str, str]]:
    """Block hash to (endpoint, model, account) that minted it."""
    minted: dict[str, tuple[str, str, str]] = {}
    found: dict[str, tuple[str, str, str]] = {}
    for commit in commits:
        if isinstance(commit.value, Response):
            origin = commit.value.origin
            minted[commit.response] = (origin.endpoint, origin.requested_model, origin.account)
        elif commit.response in minted:
            found[commit.hash] = minted[commit.response]
    return found
