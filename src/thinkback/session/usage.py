"""``session.usage``: what was used, by step, turn, model, session and family, and what the next request will carry.

Everything is read off the log. What a session forked from is not its own: a sum never counts a response twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias, Unpack

import msgspec

from thinkback.log.protocol import SessionInfo, Store
from thinkback.model.commits import Commit, Head
from thinkback.model.plan import Counts
from thinkback.session import requests
from thinkback.session.history.revisions import family as relatives
from thinkback.session.places import NOWHERE, OWN, Place, day_of, places
from thinkback.turn.controls import efforts
from thinkback.turn.hints import Hint, hints
from thinkback.turn.spending import Ledger, Spending, StepUse, TurnUse, spending

if TYPE_CHECKING:
    from thinkback.observe.cost import Cost
    from thinkback.session.conversation import Conversation
    from thinkback.session.requests import CallOptions


class BudgetUse(msgspec.Struct, frozen=True):
    """How much of ``reasoning.budget`` (tokens) the session has spent; ``limit`` is ``None`` where none is set."""

    spent: int
    limit: int | None
    action: str


Facet: TypeAlias = Literal["model", "program", "project", "day", "session"]


class StoreUsage(msgspec.Struct, frozen=True):
    """What all sessions of a store used, and each of them by its name; ``steps`` is what that is the sum of, ``places``
    says where each session is from.
    """

    total: Spending
    sessions: dict[str, Spending]
    steps: dict[str, list[StepUse]] = {}
    places: dict[str, Place] = {}

    def by(self, facet: Facet, since: int = 0, program: str = "", project: str = "") -> dict[str, list[StepUse]]:
        """The steps since a time (microseconds UTC), of a program and a project where one is named, by a facet.

        Days (UTC) in order, anything else by its output, the largest first.
        """
        found: dict[str, list[StepUse]] = {}
        for name, steps in self.steps.items():
            place = self.places.get(name, NOWHERE)
            for step in steps:
                own = program_of(step, place)
                if step.time >= since and program in ("", own) and project in ("", place.project):
                    facets = {"program": own, "project": place.project, "session": name, "model": step.model}
                    found.setdefault(facets.get(facet) or day_of(step.time) * (facet == "day"), []).append(step)
        if facet == "day":
            return dict(sorted(found.items()))
        return dict(sorted(found.items(), key=lambda item: -sum(step.use.output or 0 for step in item[1])))


class SessionUsage:
    """The use of one session, read when it is asked for."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation

    def steps(self) -> tuple[StepUse, ...]:
        """Each response on the way to here, oldest first, with what it shares with a session it was forked from."""
        return tuple(self._ledger().steps)

    def turns(self) -> tuple[TurnUse, ...]:
        """The same by turns."""
        return self._ledger().turns()

    def total(self) -> Spending:
        """What this session used itself, on all its branches, also where none leads any more; by model too."""
        return spending(self.counted())

    def family(self) -> Spending:
        """What this session used, and all that descend from the same one."""
        return spending(self.counted(family=True))

    def counted(self, *, family: bool = False) -> list[StepUse]:
        """The steps that ``total``, or ``family``, is the sum of."""
        log, info = self._conversation.store.log, self._conversation.info
        if not family:
            return own_steps(log, info)
        return [step for found in _each(log, relatives(log, info.family)).values() for step in found]

    def delegated(self) -> list[StepUse]:
        """The steps of its sub-agents, and of those that they had in turn."""
        log, info = self._conversation.store.log, self._conversation.info
        tasks = [other for other in relatives(log, info.family) if other.is_task]
        found = [info]
        for parent in found:
            found += [task for task in tasks if task.parent == parent.id]
        return [step for steps in _each(log, found[1:]).values() for step in steps]

    def cost(self, steps: Iterable[StepUse] | None = None) -> Cost:
        """US dollars of ``steps``, or of all that this session used: as reported, else by dated prices.

        Raises ``RuleFileError`` for a price file with a fault.
        """
        from thinkback.session.observing import costs

        return costs(self.counted() if steps is None else steps)

    def hints(self) -> list[Hint]:
        """What is worth knowing of how the conversation goes, with what to do about it."""
        configuration = self._conversation.current()
        takes = efforts(configuration.target) if configuration.place.is_complete else ()
        return hints(self.turns(), configuration.settings().effort, takes)

    def context(self, **options: Unpack[CallOptions]) -> Counts:
        """Tokens of the next request, estimated: ``raw`` what is stored, ``effective`` what would be sent."""
        # A spent budget would refuse the request; its size is asked for, not the request.
        options["settings"] = {**(options.get("settings") or {}), "reasoning.budgetAction": "warn"}
        from thinkback.session.planning import plan_of

        conversation, read = self._conversation, requests.read_options(options)
        conversation.refresh()
        return plan_of(conversation, conversation.configure(), read).counts

    def budget(self) -> BudgetUse:
        """What was spent of the budget of reasoning."""
        settings = self._conversation.current().settings()
        self._conversation.refresh()
        return BudgetUse(spent(self._conversation), settings.budget, settings.budget_action)

    def _ledger(self) -> Ledger:
        self._conversation.refresh()
        ledger = Ledger()
        ledger.take(self._conversation.history.commits)
        return ledger


class Spent:
    """The tokens of reasoning that a session has spent, read once and then followed commit by commit.

    What was imported is not spent: the budget is one of requests.
    """

    def __init__(self, log: Store, info: SessionInfo) -> None:
        self._ledger = Ledger()
        for line in lines_of(log, info):
            self._ledger.take(line)
        self._inherited = _inherited(log, info)
        self._tokens = self._counted = self._at = 0
        self._head = ""

    def tokens(self, commits: Sequence[Commit]) -> int:
        """The sum with what ``commits``, the history of the session's line, has on top of what was seen of it."""
        if self._at > len(commits) or (self._at and commits[self._at - 1].hash != self._head):
            self._at = 0
        self._ledger.take(commits[self._at :])
        self._at, self._head = len(commits), commits[-1].hash if commits else ""
        new = self._ledger.steps[self._counted :]
        own = (step for step in new if step.commit not in self._inherited and not step.program)
        self._tokens += sum(step.use.reasoning or 0 for step in own)
        self._counted = len(self._ledger.steps)
        return self._tokens


def spent(conversation: Conversation) -> int:
    """The tokens of reasoning that a session has spent itself, on all its branches.

    What others store on branches that this program does not stand on is seen when it opens the session again.
    """
    if conversation.spent is None:
        conversation.spent = Spent(conversation.store.log, conversation.info)
    return conversation.spent.tokens(conversation.history.commits)


def usage(log: Store) -> StoreUsage:
    """What all sessions used."""
    found = _each(log, log.list_sessions())
    steps = [step for steps in found.values() for step in steps]
    where = {place.session: place for place in places(log).values()}
    return StoreUsage(spending(steps), {name: spending(steps) for name, steps in found.items()}, found, where)


def program_of(step: StepUse, place: Place) -> str:
    """Who asked: what was imported is its program's; in a session that was, everything else is thinkback's."""
    return step.program or (OWN if place.is_imported else place.program)


def _each(log: Store, infos: Iterable[SessionInfo]) -> dict[str, list[StepUse]]:
    """The steps of sessions, by name; of those that several hold, the session that was made first, or ended first.

    The same holds for responses that programs copied from one history into another.
    """
    seen: set[object] = set()
    found: dict[str, list[StepUse]] = {}
    for info in sorted(infos, key=lambda info: (info.created, info.parent != "", info.updated, info.name)):
        steps = [step for step in _steps(log, info) if seen.isdisjoint((step.commit, *_copied_as(step)))]
        seen.update(key for step in steps for key in (step.commit, *_copied_as(step)))
        found[info.name] = steps
    return found


def _copied_as(step: StepUse) -> list[tuple[object, ...]]:
    """What a copy of an imported response has in common with it. Some servers give every response the same ids: then
    the tokens that went in tell them apart. Those that came out are fewer where a copy was made too early.
    """
    usage = step.usage
    if usage is None:
        return []
    return [(step.program, step.model, usage.input, usage.cached, id) for id in step.source_ids]


def own_steps(log: Store, info: SessionInfo) -> list[StepUse]:
    """What a session used itself, without what it shares with the one that it was made from."""
    inherited = _inherited(log, info)
    return [step for step in _steps(log, info) if step.commit not in inherited]


def _inherited(log: Store, info: SessionInfo) -> frozenset[str]:
    """What the session has of the one it was made from."""
    parent = log.find_session(info.parent) if info.parent else None
    return frozenset() if parent is None else frozenset(step.commit for step in _steps(log, parent))


def _steps(log: Store, info: SessionInfo) -> list[StepUse]:
    ledger = Ledger()
    for line in lines_of(log, info):
        ledger.take(line)
    return ledger.steps


def lines_of(log: Store, info: SessionInfo) -> Iterator[Sequence[Commit]]:
    """Histories that together hold all that a session stored and stands on."""
    ends = {branch.head for branch in log.refs.list(info.id)} | set(log.care.ends(info.id))
    seen: set[str] = set()
    for end in sorted(ends - {Head()}, key=lambda end: -end.seq):
        if end.hash not in seen:
            line = log.read_to(info.id, end.hash)
            seen.update(commit.hash for commit in line)
            yield line
