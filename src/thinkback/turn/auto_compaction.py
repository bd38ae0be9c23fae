"""Which checkpoint brings room in a context that fills up: by itself before a request, or after a refusal.

Promises: a pure function of counts, settings and the log; what is proposed makes the next request smaller, as building
that request shows; where reasoning is bound to what stands before it, nothing is proposed while a turn is under way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from thinkback.compile.policy import binds
from thinkback.errors import ThinkbackError
from thinkback.log.compaction import AUTOMATIC, OVERFLOW, USEFUL, Wish, is_cooling, is_empty
from thinkback.log.outline import Outline
from thinkback.log.seal import seal
from thinkback.log.strategies import made
from thinkback.model.commits import Commit, Compaction, CompactionStrategy, Draft, Step
from thinkback.model.target import Decision, Settings
from thinkback.settings import percentages
from thinkback.turn.plan import History, Plan
from thinkback.turn.pressure import level, share

ATTEMPTS = 3
"""Checkpoints that one turn makes of a context that the provider calls too long."""
_TAILS = (8, 4, 2, 1)
# How many lost thoughts are named.
_NAMED = 3
# What is left of a result where nothing else helps.
_SHORT = 1_000
# Between these and a checkpoint nothing was said that the checkpoint did not know of.
_SAID = frozenset({"user", "response", "tool_result"})


def trial(history: History, plan: Plan, found: Compaction) -> Plan:
    """``plan`` as it would be behind the checkpoint ``found``. Raises ``ReplayRefused``, ``ContextRefused``."""
    return trial_of(history, plan, [Draft("compaction", found)])


def trial_of(history: History, plan: Plan, drafts: Iterable[Draft]) -> Plan:
    """``plan`` as it would be behind ``drafts``. Raises ``ReplayRefused``, ``ContextRefused``."""
    sealed = seal(Step("", tuple(drafts), 0), history.head)
    tried = History([*history.commits, *sealed])
    return tried.plan(plan.target, plan.wanted, plan.tools, plan.native)


def unbound(before: Plan, after: Plan) -> tuple[Decision, ...]:
    """The carriers that go along in ``before`` and stay away in ``after``, because they are bound to what stood before
    them.
    """
    went = {(found.block, found.what) for found in before.decisions if found.action != "drop"}
    return tuple(
        found
        for found in after.decisions
        if found.action == "drop" and found.cause == "bound" and (found.block, found.what) in went
    )


def thoughts_lost(history: History, plan: Plan, found: Compaction) -> str:
    """Say which thoughts stay in the conversation and can no longer go back to the model behind the checkpoint
    ``found``; empty where there are none.
    """
    if is_empty(found) or not binds(plan.target.rule, plan.wanted):
        return ""
    return lost_line(unbound(plan, trial(history, plan, found)), plan.target.model)


def lost_line(lost: Sequence[Decision], model: str) -> str:
    """``unbound`` in words."""
    hashes = list(dict.fromkeys(decision.block[:8] for decision in lost))
    if not hashes:
        return ""
    named = ", ".join(hashes[:_NAMED]) + (f" and {len(hashes) - _NAMED} more" if len(hashes) > _NAMED else "")
    thoughts = f"{len(hashes)} {'thought' if len(hashes) == 1 else 'thoughts'}"
    return f"compaction costs {thoughts}: {model} binds them to what stood before, so they no longer go back ({named})"


def is_closed(outline: Outline, plan: Plan) -> bool:
    """Whether no checkpoint may be made now: what the turn under way brought is bound to what stands before it."""
    return outline.begun and binds(plan.target.rule, plan.wanted)


def automatic(history: History, plan: Plan) -> Compaction | None:
    """The checkpoint to make before ``plan`` is sent, if it is time; an empty one says why none helps.

    After one that helped little there is none for some turns.
    """
    chosen = choice(history, plan)
    if chosen is None:
        return None
    wish, found = chosen
    reason = f"{AUTOMATIC}: {share(plan.counts)}"
    if found is not None and found.after < USEFUL * found.before:
        return msgspec.structs.replace(found, reason=reason)
    before = plan.counts.effective
    saved = f"it would save {before - found.after:,} tokens" if found is not None else "there is nothing left to take"
    note = f"nothing was done: {saved}"
    return Compaction(wish.strategy, before=before, after=before, reason=reason, note=note)


def choice(history: History, plan: Plan) -> tuple[Wish, Compaction | None] | None:
    """What is to be done before ``plan`` is sent: the wish and the best that came of it; ``None``: it is not time."""
    reached = level(plan.counts, plan.wanted)
    trims = reached == "trim"
    if reached in ("", "warn") or _is_tried(history.commits) or is_cooling(history.commits, trims=trims):
        return None
    outline = Outline(history.commits)
    if is_closed(outline, plan):
        return None
    strategy: CompactionStrategy = "tool_results" if trims else _strategy(plan.wanted)
    wishes = (*_by_turns(strategy, plan.wanted.compaction_keep_turns), *_by_responses(strategy, outline))
    goal = percentages(plan.wanted.compaction_thresholds)[0] * plan.counts.limit // 100
    return _first(history, plan, outline, wishes, goal) or (wishes[0], None)


def after_refusal(history: History, plan: Plan, refusal: str) -> Compaction | None:
    """The checkpoint to make after the provider called ``plan`` too long: fewer turns stay each time, at most
    ``ATTEMPTS`` times in a turn; ``None`` where nothing is left to take.
    """
    made_before = _made_this_turn(history.commits)
    outline = Outline(history.commits)
    if not plan.wanted.compaction_auto or made_before >= ATTEMPTS or is_closed(outline, plan):
        return None
    strategy = _strategy(plan.wanted)
    last = (
        Wish(strategy, tail=1, responses=1, size=_SHORT, trims=True),
        Wish("tool_results", tail=1, size=_SHORT, trims=True),
    )
    wishes = (*_by_turns(strategy, _TAILS[0]), *_by_responses(strategy, outline), *last)
    is_last = made_before == ATTEMPTS - 1
    goal = 0 if is_last else int(USEFUL * plan.counts.effective)
    found = _first(history, plan, outline, wishes, goal)
    return None if found is None else msgspec.structs.replace(found[1], reason=f"{OVERFLOW}: {refusal}")


def _first(
    history: History, plan: Plan, outline: Outline, wishes: Iterable[Wish], goal: int
) -> tuple[Wish, Compaction] | None:
    """The first checkpoint that leaves at most ``goal`` tokens, else the one that leaves the fewest.

    ``None`` where none makes the request smaller.
    """
    before = plan.counts.effective
    best: tuple[Wish, Compaction] | None = None
    for wish in wishes:
        try:
            found = made(outline, wish)
            after = trial(history, plan, found).counts.effective
        except ThinkbackError:  # nothing to take, or what is left is no request that the endpoint takes
            continue
        if after < (best[1].after if best is not None else before):
            best = wish, msgspec.structs.replace(found, before=before, after=after)
            if after <= goal:
                break
    return best


def _by_turns(strategy: CompactionStrategy, keep: int) -> Iterator[Wish]:
    """Fewer turns stay each time."""
    for tail in (keep, *(tail for tail in _TAILS if tail < keep)):
        yield Wish(strategy, tail)


def _by_responses(strategy: CompactionStrategy, outline: Outline) -> Iterator[Wish]:
    """Of a turn under way fewer responses stay each time."""
    for responses in _TAILS if outline.begun else ():
        yield Wish(strategy, 1, responses=responses)


def _strategy(settings: Settings) -> CompactionStrategy:
    """How a history is summarised without asking anybody."""
    return "deterministic" if settings.compaction_strategy == "model" else settings.compaction_strategy


def _is_tried(commits: list[Commit]) -> bool:
    """Whether nothing was said since the last checkpoint that was made by itself."""
    for commit in reversed(commits):
        if commit.kind in _SAID and not commit.edit:
            return False
        if isinstance(commit.value, Compaction) and commit.value.reason.startswith((AUTOMATIC, OVERFLOW)):
            return True
    return False


def _made_this_turn(commits: list[Commit]) -> int:
    """How many checkpoints answered a refusal since the user last said something."""
    count = 0
    for commit in reversed(commits):
        if commit.kind == "user" and not commit.edit:
            break
        count += isinstance(commit.value, Compaction) and commit.value.reason.startswith(OVERFLOW)
    return count
