"""How full the model's context is. Cheap: it is asked before every request; what is done about it is ``room``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from thinkback.model.commits import Compaction
from thinkback.model.plan import Counts
from thinkback.model.target import Settings
from thinkback.settings import percentages

if TYPE_CHECKING:
    from thinkback.turn.plan import History, Plan

Level: TypeAlias = Literal["", "warn", "trim", "summarise"]

_LEVELS: tuple[Level, ...] = ("", "warn", "trim", "summarise")


def level(counts: Counts, settings: Settings) -> Level:
    """Which of ``compaction.thresholds`` the next request reaches; none where the context's size is not known."""
    if not settings.compaction_auto or not counts.limit:
        return ""
    reached = [counts.effective * 100 >= limit * counts.limit for limit in percentages(settings.compaction_thresholds)]
    return _LEVELS[sum(reached)]


def share(counts: Counts) -> str:
    """How full the context is, for people."""
    percent = round(counts.effective * 100 / counts.limit)
    return f"{percent} % of {counts.limit:,} tokens ({counts.effective:,} effective)"


def describe(found: Compaction) -> str:
    """What became of a checkpoint, for people."""
    return f"{found.reason}: {found.note or f'{found.before:,} tokens become {found.after:,}'}"


def automatic(history: History, plan: Plan) -> Compaction | None:
    """``room.automatic``, which is not even imported while there is room."""
    if level(plan.counts, plan.wanted) in ("", "warn"):
        return None
    from thinkback.turn import auto_compaction

    return auto_compaction.automatic(history, plan)


def thoughts_lost(history: History, plan: Plan, found: Compaction) -> str:
    """``auto_compaction.thoughts_lost``."""
    from thinkback.turn import auto_compaction

    return auto_compaction.thoughts_lost(history, plan, found)


def after_refusal(history: History, plan: Plan, refusal: str) -> Compaction | None:
    """``room.after_refusal``."""
    from thinkback.turn import auto_compaction

    return auto_compaction.after_refusal(history, plan, refusal)
