"""``session.compaction``: say a long history in fewer words, durably and visibly; nothing is deleted.

Promises: a checkpoint makes the next request smaller, or it is refused; what it would do can be seen before. Where
reasoning is bound to what stands before it, none is made while a turn is under way.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple, TypedDict, Unpack, get_args

import msgspec

from thinkback.errors import CompactionRefused, SettingError
from thinkback.log.compaction import TRIM_TO, Wish, checkpoint, cut
from thinkback.log.drafting import Void
from thinkback.log.outline import Outline
from thinkback.log.progress import Meter, Progress
from thinkback.log.strategies import made
from thinkback.log.thoughts import gains
from thinkback.model.commits import Commit, Compaction, CompactionStrategy, Draft, Request
from thinkback.model.plan import Counts
from thinkback.model.target import Decision
from thinkback.session import requests
from thinkback.session.planning import plan_of
from thinkback.session.requests import Options
from thinkback.turn import auto_compaction
from thinkback.turn.plan import Plan

if TYPE_CHECKING:
    from thinkback.session.conversation import Conversation
    from thinkback.session.history.summarising import Written

_STRATEGIES: tuple[CompactionStrategy, ...] = get_args(CompactionStrategy)


class CompactionOptions(TypedDict, total=False):
    """What ``plan`` and ``run`` take besides strategy and tail; ``Compactor.run`` says what each means."""

    head: int
    responses: int
    text: str
    size: int
    endpoint: str
    model: str
    reason: str


class CheckpointRequest(NamedTuple):
    """A checkpoint that somebody asked for: what it is to do, who writes it, and why."""

    wish: Wish
    endpoint: str
    model: str
    reason: str


class CompactionPlan(msgspec.Struct, frozen=True):
    """What a checkpoint does, or would do. ``covered`` are the hashes of what the summary stands for: messages and
    ``response`` commits. ``unbound`` are the carriers that stay and can no longer go along, with the reason.

    Of shorter thoughts: ``thought_tokens`` are those of the thoughts before and after, estimated, and ``void`` the
    carriers that the edits void, as of the responses of these thoughts.

    ``estimated``: the model that is to write was not asked. The summary is then one from the log alone, and a thought
    counts with a third of its length.
    """

    checkpoint: Compaction
    covered: tuple[str, ...]
    before: Counts
    after: Counts
    unbound: tuple[Decision, ...] = ()
    estimated: bool = False
    thought_tokens: tuple[int, int] = (0, 0)
    void: tuple[Void, ...] = ()

    @property
    def shortened(self) -> tuple[str, ...]:
        """Hashes of the thoughts that go in shorter forms."""
        return self.checkpoint.shortened

    @property
    def kept(self) -> tuple[str, ...]:
        """Hashes of what goes word for word behind the summary."""
        return self.checkpoint.kept

    @property
    def trimmed(self) -> tuple[str, ...]:
        """Hashes of the tool results that go out shorter."""
        return tuple(hash for hash, _ in self.checkpoint.trimmed)


def refuse_little_gain(plan: CompactionPlan) -> None:
    """Raise ``CompactionRefused`` where ``plan`` makes the next request hardly smaller."""
    before, after = plan.before.effective, plan.after.effective
    if not gains(before, after):
        raise CompactionRefused(
            f"the next request would hardly be smaller: {before:,} tokens before, {after:,} after",
            details={"before": before, "after": after},
            next_actions=("keep fewer turns", "or go on: there is nothing to gain yet"),
        )


class Compactor:
    """Checkpoints of one session. They are commits: they branch, travel in time and can be looked at like any other."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation

    def plan(
        self, strategy: str | None = None, tail: int | None = None, **options: Unpack[CompactionOptions]
    ) -> CompactionPlan:
        """What ``run`` would do; nothing is stored, and no model is asked. Arguments and errors as there."""
        self._conversation.last_turn.settle()
        self._conversation.refresh()
        asked = self.parse_request(strategy, tail, options)
        if asked.wish.strategy == "thoughts":
            from thinkback.session.history.shortening import Shortening

            return Shortening(self._conversation, asked).plan
        return self.planned(asked)

    def run(
        self,
        strategy: str | None = None,
        tail: int | None = None,
        *,
        progress: Progress | None = None,
        **options: Unpack[CompactionOptions],
    ) -> Commit:
        """Make a checkpoint; returns its commit.

        ``strategy`` is deterministic, model, manual, sliding_window, tool_results, middle_out or thoughts (unset:
        manual with ``text``, else the setting ``compaction.strategy``). The last ``tail`` turns stay (unset:
        ``compaction.keepTurns``), with middle_out the first ``head`` too; of a turn under way the last ``responses``.
        ``text`` is the summary by hand, ``size`` what is left of a long result, in characters. ``endpoint`` and
        ``model`` name who writes the summary, ``reason`` is kept with it.

        thoughts: a model writes shorter forms of the readable thoughts before the last ``tail`` turns, which are stored
        as edits of them; answers stay. Warns first of carriers that this voids. Raises what the model's request raises,
        and ``CompactionRefused`` while calls wait for results, or where the endpoint would get no shorter thought back.

        Raises ``CompactionRefused`` where it would make nothing smaller, lose what is IMPORTANT, or break the turn
        under way; ``ReplayRefused`` and ``ContextRefused`` where the endpoint would not take what is left; ``Veto``
        where a ``pre_compact`` hook refuses; ``NotFoundError`` without an endpoint to plan for,
        ``CredentialError`` without a key for the model that is to write.
        """
        self._conversation.last_turn.settle()
        self._conversation.refresh()
        asked = self.parse_request(strategy, tail, options)
        if asked.wish.strategy == "thoughts":
            from thinkback.session.history.shortening import Shortening

            return Shortening(self._conversation, asked).run(progress)
        meter, written = Meter(progress, 1, "summaries"), None
        if asked.wish.strategy == "model":
            from thinkback.session.history.summarising import Summarising

            written = Summarising(self._conversation, asked, self.outline()).run()
        made = self.make(asked, written)
        meter.add()
        return made

    def list(self) -> list[Commit]:
        """The checkpoints of the current branch, oldest first."""
        self._conversation.refresh()
        return [commit for commit in self._conversation.history.commits if isinstance(commit.value, Compaction)]

    # -- for the session itself ------------------------------------------------------------------------------------

    def parse_request(self, strategy: str | None, tail: int | None, options: CompactionOptions) -> CheckpointRequest:
        """What the arguments say. Raises ``SettingError`` for a strategy or a number that cannot be."""
        settings = self._conversation.current().settings()
        text = options.get("text", "")
        name = strategy or ("manual" if text else settings.compaction_strategy)
        if name not in _STRATEGIES:
            raise SettingError(
                f"there is no strategy {name!r}",
                details={"key": "strategy", "value": name, "allowed": _STRATEGIES},
                next_actions=(f"use one of {', '.join(_STRATEGIES)}",),
            )
        wish = Wish(
            name,
            tail=settings.compaction_keep_turns if tail is None else tail,
            head=options.get("head", 1),
            responses=options.get("responses", 0),
            text=text,
            size=options.get("size", TRIM_TO),
        )
        for key in ("tail", "head", "responses", "size"):
            value = getattr(wish, key)
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise SettingError(f"{key} must be a whole number from 0, not {value!r}", details={"key": key})
        who = (options.get("endpoint", ""), options.get("model", ""))
        return CheckpointRequest(wish, *who, options.get("reason", ""))

    def planned(self, asked: CheckpointRequest, written: Written | None = None) -> CompactionPlan:
        """What comes of it, with the summary that a model has written where it has."""
        base = self.next_plan()
        outline = self.outline(base)
        plan = self._planned(base, outline, asked, written)
        if plan.after.effective >= plan.before.effective and written is not None and written.text:
            note = f"the summary by {written.model} is no shorter than what it stands for"
            plan = self._planned(base, outline, asked, written._replace(text="", note=note))
        refuse_little_gain(plan)
        return plan

    def make(self, asked: CheckpointRequest, written: Written | None) -> Commit:
        """Make the checkpoint that somebody asked for; warns where the log had to do in place of a model."""
        made = self.store(self.planned(asked, written))
        if written is not None and isinstance(made.value, Compaction) and made.value.strategy != "model":
            warnings.warn(f"the summary is from the log alone: {made.value.note}", stacklevel=3)
        return made

    def store(self, plan: CompactionPlan, edits: Iterable[Draft] = ()) -> Commit:
        """Make the checkpoint of ``plan`` and the ``edits`` that belong to it as one step, if no hook refuses."""
        self._conversation.line.hooks.run("pre_compact", plan.checkpoint)
        return self._conversation.append([Draft("compaction", plan.checkpoint), *edits])[0]

    def next_plan(self) -> Plan:
        """Plan the next request; without an endpoint, one to where the last request went."""
        conversation, last = self._conversation, self.last_request()
        configuration = conversation.configure()
        if configuration.place.is_complete or last is None:
            return plan_of(conversation, configuration, Options())
        return requests.plan_like(last, conversation.history.commits, conversation.history)

    def last_request(self) -> Request | None:
        """The record of the last request of this branch."""
        commits = reversed(self._conversation.history.commits)
        return next((commit.value for commit in commits if isinstance(commit.value, Request)), None)

    def outline(self, base: Plan | None = None) -> Outline:
        """The history to be cut; ``base`` is the next request. Raises ``CompactionRefused`` where that must wait."""
        base = self.next_plan() if base is None else base
        outline = Outline(self._conversation.history.commits)
        if auto_compaction.is_closed(outline, base):
            raise CompactionRefused(
                f"{base.target.model} binds its reasoning to what stands before it, and a turn is under way",
                details={"rule": base.target.rule.id, "model": base.target.model},
                next_actions=("let the turn end first", "or interrupt it by asking something new"),
            )
        return outline

    def _planned(
        self, base: Plan, outline: Outline, asked: CheckpointRequest, written: Written | None
    ) -> CompactionPlan:
        wish, before = asked.wish, base.counts
        found = cut(outline, wish) if wish.strategy != "tool_results" else None
        if written is not None and written.text:
            payload = checkpoint(outline, wish, found, written.text)
        else:
            payload = made(outline, wish)
        if written is not None:
            # What a model did not write is not said to be its own.
            strategy: CompactionStrategy = "model" if written.text else "deterministic"
            said = {"strategy": strategy, "model": written.model, "usage": written.usage, "note": written.note}
            payload = msgspec.structs.replace(payload, **said)
        after = auto_compaction.trial(self._conversation.history, base, payload)
        payload = msgspec.structs.replace(
            payload, before=before.effective, after=after.counts.effective, reason=asked.reason
        )
        pieces = found.covered if found is not None else ()
        return CompactionPlan(
            payload,
            tuple(piece.hash for piece in pieces),
            before,
            after.counts,
            auto_compaction.unbound(base, after),
            estimated=wish.strategy == "model" and written is None,
        )
