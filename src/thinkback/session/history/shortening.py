"""A model writes shorter forms of old thoughts, which are stored as edits of them; answers stay as they are.

Promises: what it costs is known before anything is asked; nothing is stored unless the model answered whole and the
next request gets smaller by it; a form that is hardly shorter is not kept.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from thinkback.compile.counts import estimate_thinking_tokens
from thinkback.compile.policy import binds
from thinkback.errors import CompactionRefused
from thinkback.log.drafting import voids_of_all
from thinkback.log.progress import Meter, Progress
from thinkback.log.thoughts import (
    LEAST_LENGTH,
    SYSTEM,
    OldThought,
    ShortForms,
    batches,
    expected_forms,
    form_drafts,
    gains,
    old_thoughts,
    read_forms,
    shortening_request,
)
from thinkback.model.blocks import ThinkingBlock
from thinkback.model.commits import Commit, Compaction, Draft, Usage
from thinkback.model.target import WITHHELD, Decision
from thinkback.session.history.asking import Inquiry
from thinkback.session.history.compacting import CheckpointRequest, CompactionPlan, Compactor, refuse_little_gain
from thinkback.session.history.summarising import Writer, writer_of
from thinkback.session.ids import outside
from thinkback.session.reply import total
from thinkback.turn import auto_compaction
from thinkback.turn.plan import Plan

if TYPE_CHECKING:
    from thinkback.session.conversation import Conversation


class Shortening:
    """Shorter thoughts in the making. ``plan`` is what they come to if a form has a third of its thought's length.

    Raises ``CompactionRefused`` while calls wait for results, where no thought is there to be shortened, where the
    endpoint gets none back that was changed, and where the next request would hardly be smaller.
    """

    def __init__(self, conversation: Conversation, asked: CheckpointRequest) -> None:
        self._conversation = conversation
        self._asked = asked
        self._compactor = Compactor(conversation)
        self._base = self._compactor.next_plan()
        self._refuse_open_calls()
        self._outline = self._compactor.outline(self._base)
        self._thoughts = self._changeable(list(old_thoughts(self._outline, asked.wish.tail)))
        self.plan = self._planned(expected_forms(self._thoughts), estimated=True)
        refuse_little_gain(self.plan)

    def run(self, progress: Progress | None = None) -> Commit:
        """Ask, wait and store."""
        writer = self._writer()
        forms: dict[str, str] = {}
        inquiries = self._inquiries(writer)
        meter = Meter(progress, len(inquiries), "summaries")
        for inquiry in inquiries:
            try:
                forms |= inquiry.run(self._conversation.store, writer.place)
            except CompactionRefused as error:
                raise _unusable(writer, error) from error
            meter.add()
        return self._compactor.store(*self._answered(forms, writer, inquiries))

    async def ask_async(self) -> tuple[CompactionPlan, list[Draft]]:
        """Ask for asyncio; returns what is to be stored."""
        writer = self._writer()
        forms: dict[str, str] = {}
        inquiries = self._inquiries(writer)
        for inquiry in inquiries:
            try:
                forms |= await inquiry.run_async(self._conversation.store, writer.place)
            except CompactionRefused as error:
                raise _unusable(writer, error) from error
        return self._answered(forms, writer, inquiries)

    def _refuse_open_calls(self) -> None:
        if self._conversation.history.open_calls():
            raise CompactionRefused(
                "a turn is under way: its calls have no results yet, and no thought can be changed now",
                details={"model": self._base.target.model},
                next_actions=("let the turn end first", "or interrupt it by asking something new"),
            )

    def _changeable(self, found: Sequence[OldThought]) -> list[OldThought]:
        """Those of ``found`` that go back to the endpoint, and would do so in another form too."""
        tail = self._asked.wish.tail
        if not found:
            raise CompactionRefused(
                f"there is no thought to shorten: before the last {tail} turns none has {LEAST_LENGTH} characters that "
                "can be read",
                details={"strategy": "thoughts", "tail": tail},
                next_actions=("keep fewer turns", "or go on: there is nothing to gain yet"),
            )
        went = _sent(self._base)
        tried = _sent(self._trial(expected_forms(found)))
        helped = [
            thought
            for thought in found
            if thought.hash in went
            and thought.hash in tried
            and tried[thought.hash].characters < went[thought.hash].characters
        ]
        if not helped:
            raise self._useless(found, went)
        return helped

    def _useless(self, found: Sequence[OldThought], went: Mapping[str, Decision]) -> CompactionRefused:
        """The error where a shorter form changes no request."""
        target = self._base.target
        details = {"rule": target.rule.id, "model": target.model, "thoughts": len(found)}
        if any(thought.hash in went for thought in found):
            return CompactionRefused(
                f"shorter thoughts are of no use at {target.endpoint.id} {target.model}: it gets thoughts back as they "
                "were made or not at all",
                details=details,
                next_actions=("summarise with another strategy, or trim tool results",),
            )
        reasons = {each.block: each.reason for each in self._base.decisions if each.what == "reasoning"}
        why = next((reasons[thought.hash] for thought in found if thought.hash in reasons), "")
        return CompactionRefused(
            f"shorter thoughts are of no use at {target.endpoint.id} {target.model}: none before the last "
            f"{self._asked.wish.tail} turns goes back" + (f" ({why})" if why else ""),
            details=details,
            next_actions=("summarise with another strategy", "or let thoughts go back: `thinkback why --next`"),
        )

    def _writer(self) -> Writer:
        """Who writes; first it is said which carriers become void."""
        writer = writer_of(self._conversation, self._asked)
        plan = self.plan
        if plan.void or plan.unbound:
            named = ", ".join(f"{kind} of {hash[:12]}" for hash, kind in plan.void[:5])
            more = f" and {len(plan.void) - 5} more" if len(plan.void) > 5 else ""
            lost = auto_compaction.lost_line(plan.unbound, self._base.target.model)
            told = f"shortening {len(plan.shortened)} thoughts voids opaque values: {named}{more}"
            warnings.warn(f"{told}; {lost}" if lost else told, stacklevel=outside())
        return writer

    def _inquiries(self, writer: Writer) -> list[Inquiry[dict[str, str]]]:
        return [self._inquiry(batch, writer) for batch in batches(self._thoughts, writer.size)]

    def _inquiry(self, batch: Sequence[OldThought], writer: Writer) -> Inquiry[dict[str, str]]:
        prompt = shortening_request(batch)
        return Inquiry(SYSTEM, prompt, ShortForms, lambda answer: read_forms(answer, batch), strict=writer.strict)

    def _answered(
        self, forms: Mapping[str, str], writer: Writer, inquiries: Iterable[Inquiry[dict[str, str]]]
    ) -> tuple[CompactionPlan, list[Draft]]:
        """What is stored of the forms that the model wrote. Raises ``CompactionRefused`` where they gain too little."""
        kept = {
            thought.hash: forms[thought.hash]
            for thought in self._thoughts
            if gains(_tokens(thought.text), _tokens(forms[thought.hash]))
        }
        if not kept:
            raise CompactionRefused(
                f"the forms that {writer.model} wrote are hardly shorter than the thoughts",
                details={"model": writer.model, "thoughts": len(self._thoughts)},
                next_actions=("let another model write: compaction.model", "or go on: there is nothing to gain yet"),
            )
        usage = total([usage for inquiry in inquiries for usage in inquiry.usages])
        plan = self._planned(kept, writer.model, usage)
        refuse_little_gain(plan)
        return plan, form_drafts(self._outline, kept)

    def _trial(self, forms: Mapping[str, str]) -> Plan:
        return auto_compaction.trial_of(self._conversation.history, self._base, form_drafts(self._outline, forms))

    def _planned(
        self, forms: Mapping[str, str], model: str = "", usage: Usage | None = None, *, estimated: bool = False
    ) -> CompactionPlan:
        base, after = self._base, self._trial(forms)
        thoughts = [thought for thought in self._thoughts if thought.hash in forms]
        left = len(self._thoughts) - len(thoughts)
        checkpoint = Compaction(
            "thoughts",
            model=model,
            usage=usage,
            before=base.counts.effective,
            after=after.counts.effective,
            reason=self._asked.reason,
            note=f"{left} of {left + len(thoughts)} forms were hardly shorter and are not kept" if left else "",
            shortened=tuple(thought.hash for thought in thoughts),
        )
        bound = binds(base.target.rule, base.wanted)
        return CompactionPlan(
            checkpoint,
            (),
            base.counts,
            after.counts,
            auto_compaction.unbound(base, after),
            estimated,
            (sum(_tokens(thought.text) for thought in thoughts), sum(map(_tokens, forms.values()))),
            tuple(voids_of_all(self._outline.commits, forms, prefix_bound=bound)),
        )


def _tokens(text: str) -> int:
    return estimate_thinking_tokens([ThinkingBlock(text)])


def _sent(plan: Plan) -> dict[str, Decision]:
    """What ``plan`` does with the thoughts that go back, by hash."""
    return {each.block: each for each in plan.decisions if each.what == "reasoning" and each.action not in WITHHELD}


def _unusable(writer: Writer, error: CompactionRefused) -> CompactionRefused:
    return CompactionRefused(
        f"what {writer.model} wrote cannot be used, asked twice: {error.message}",
        details={"model": writer.model},
        next_actions=("try again", "or let another model write: compaction.model"),
    )
