"""Turns to the messages of a request, with what is decided and counted about them on the way."""

from __future__ import annotations

from collections.abc import Collection, Container, Sequence
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from thinkback.compile import translate
from thinkback.compile.bound import NO_CHAIN, Chain, Link, Prefix
from thinkback.compile.counts import NO_REPORT, Report, Sizes, Tally, report_of, size_of
from thinkback.compile.decide import decide, withhold
from thinkback.compile.notes import Notes
from thinkback.compile.policy import Policy, Stance
from thinkback.compile.reached import START, Reached
from thinkback.compile.units import Changes, MessageUnit, ResponseUnit, Turn, says
from thinkback.compile.written import Bare, Written, bare_bytes, without_thoughts
from thinkback.errors import ReplayRefused, UnsupportedContent
from thinkback.model.commits import Message
from thinkback.model.plan import NOTHING, Writer
from thinkback.model.target import Decision

# The place of a response (the values of a ``Place``), the index of its message, its opaque values that went out
# before, why what is bound to a prefix must stay away, and why all of it must.
Key: TypeAlias = tuple[tuple[bool, ...], int, tuple[str, ...], str, str]

_REFUSED = "the exchange goes as text: the endpoint refused it in every other form"
_ALONE = "its response says nothing else, and the dialect has no message for reasoning alone"


class Rendition(NamedTuple):
    """What a response was rendered to: its message or items, and those of its results (none where it is withheld).

    It holds as long as ``key`` does. ``flat``: the message is text in the user's words, with the results in it.
    """

    key: Key
    message: tuple[bytes, ...]
    results: tuple[bytes, ...]
    bare: Bare
    decisions: list[Decision]
    opaque: list[str]
    link: Link
    off: bool
    lifts: bool
    sizes: Sizes
    report: Report
    flat: bool = False


class Rendering:
    """The messages of some turns, in order, that follow those ``before``; ``sent`` are the opaque values before them.

    ``prefix`` checks what is bound to a prefix; ``anchor`` is the last response that the provider keeps, as
    (fragments up to its end, messages up to its end, its id), and ``first`` the fragment behind it where it must be
    written otherwise to begin an array.
    """

    def __init__(
        self,
        policy: Policy,
        invalid: frozenset[str],
        writer: Writer,
        before: Reached = START,
        chain: Chain = NO_CHAIN,
        sent: Container[str] = (),
        prefix: Prefix | None = None,
    ) -> None:
        self._policy = policy
        self._invalid = invalid
        self._writer = writer
        self._on_top = translate.on_top(policy.rule.system, writer)
        self._sent = sent
        self._prefix = prefix
        self.reached = before.copy()
        self.fragments: list[bytes] = []
        self.bare: list[Bare] = []
        self.carried: list[bytes] = []
        self.system: list[bytes] = []
        self.decisions: list[Decision] = []
        self.opaque: dict[str, None] = {}
        self.tally = Tally()
        self.chain = chain
        self.anchor: tuple[int, int, str] | None = None
        self.first = b""
        self.open_at = -1
        self.off = self.lifts = False

    @property
    def is_on_top(self) -> bool:
        """Whether ``system`` stands outside the message array."""
        return self._on_top != "inline"

    @property
    def known(self) -> int:
        """How many messages at the beginning are as they were when reasoning behind them was made."""
        return self._prefix.known if self._prefix is not None else 0

    def add(self, turn: Turn, *, is_open: bool, kept: Collection[str] | None, gone: str = "") -> None:
        """One more turn; ``kept`` are the responses that ``keepLast`` leaves their reasoning, ``None`` for all.

        ``gone`` is why nothing of it goes but its system messages and what is pinned.
        """
        units = turn.units
        pinned = turn.pinned if gone else frozenset[str]()
        used_tools = turn.used_tools
        last = units[-1]
        if is_open and self.open_at < 0:
            self.open_at = self.reached.messages
        for unit in units:
            away = "" if unit.hash in pinned else gone
            if isinstance(unit, MessageUnit):
                if unit.change is not None or away:
                    self._add_changed(unit, away)
                else:
                    self._add_message(unit, len(unit.message.text))
            else:
                stripped = kept is not None and not is_open and unit.hash not in kept
                self._add_response(unit, (is_open, used_tools, stripped, unit is not last, unit.calls != ()), away)

    def _add_changed(self, unit: MessageUnit, gone: str) -> None:
        """A message that people changed, or that is ``gone``."""
        stored = len(unit.message.text)
        if unit.change is not None:
            gone, stored = unit.change.gone or gone, unit.change.stored
            self.change(unit.change.at)
        if not gone or (unit.role == "system" and not (unit.change is not None and unit.change.gone)):
            self._add_message(unit, stored)
            return
        self.tally.raw += stored
        self.reached.leave(unit.hash, gone)
        self.decisions.append(self._dropped(unit.hash, gone, stored))

    def systems(self, turns: Sequence[Turn], cut: int) -> list[bytes]:
        """The system messages on top, or that stand first, of ``turns`` of which ``cut`` are left out but for them."""
        found: list[bytes] = []
        began = self.reached.began
        pinned = frozenset[str]().union(*(turn.pinned for turn in turns[:cut]))
        for at, unit in ((at, unit) for at, turn in enumerate(turns) for unit in turn.units):
            if began and self._on_top != "top":
                break
            if unit.is_gone:
                continue
            if isinstance(unit, MessageUnit) and unit.role == "system":
                fragment, _, on_top = self._fragment(unit, leads=not began)
                found += [fragment] if on_top or not began else []
            else:
                began = began or at >= cut or unit.hash in pinned
        return found

    def change(self, at: int) -> None:
        """What follows does not stand behind what it was made behind, if it was made before ``at``."""
        self.reached.changed = max(self.reached.changed, at)
        if self._prefix is not None:
            self._prefix.changed = self.reached.changed

    def _add_message(self, unit: MessageUnit, stored: int) -> None:
        tally = self.tally
        tally.raw += stored
        tally.sent += len(unit.message.text)
        foreign = unit.message.dialect not in ("", self._policy.target.endpoint.dialect)
        if foreign and translate.is_setting(unit.message):
            self.decisions.append(self._dropped(unit.hash, f"a setting of a request in {unit.message.dialect}"))
            return
        leads = on_top = False
        role: Literal["system", "user"] = unit.role
        if role == "system":
            leads = not self.reached.began
            fragment, role, on_top = self._fragment(unit, leads=leads)
        else:
            fragment = unit.fragment if unit.place == role else self._written(unit, role, on_top=False)
        if unit.left_out:
            reason = f"the dialect has no place for a part of this message: {unit.left_out}"
            self.decisions.append(self._dropped(unit.hash, reason))
        if on_top:
            self.system.append(fragment)
            return
        if role == "system" and self.reached.role == "tool" and self._policy.rule.after_results:
            told = self._writer.message("user", Message(self._policy.rule.after_results))
            self._put("user", (told,))
            self._add_bare((told,))
        self._put(role, (fragment,))
        if leads:
            self.system.append(fragment)
        else:
            if not self.reached.first and role == "user":
                self.reached.began, self.reached.first = True, "user"
            self._add_bare((fragment,))

    def _fragment(self, unit: MessageUnit, *, leads: bool) -> tuple[bytes, Literal["system", "user"], bool]:
        """The bytes of a message, its role, and whether it stands on top; ``leads``: a system message that is first."""
        leads_on_top = self._on_top == "late" or (self._on_top == "lead" and self._writer.system_on_top)
        on_top = unit.role == "system" and (self._on_top == "top" or (leads_on_top and leads))
        if on_top and not leads and unit.message.wire and unit.message.dialect == self._policy.target.endpoint.dialect:
            on_top = False  # a program of this very dialect has it among the messages
        role: Literal["system", "user"] = unit.role
        if role == "system" and self._on_top == "lead" and not leads:
            role = "user"  # there is no place for it among the messages
        place = "top" if on_top else role
        if unit.place != place:
            self._written(unit, role, on_top=on_top)
        return unit.fragment, role, on_top

    def _written(self, unit: MessageUnit, role: Literal["system", "user"], *, on_top: bool) -> bytes:
        """The bytes of a message; of parts that this dialect cannot take only what they were is told."""
        writer = self._writer
        unit.place, unit.left_out = "top" if on_top else role, ""
        try:
            endpoint = self._policy.target.endpoint
            message = translate.message(unit.message, endpoint.dialect)
            message = message if endpoint.developer else translate.as_system(message)
            if role != unit.role:  # its own bytes say who it was
                message = msgspec.structs.replace(message, wire="")
            unit.fragment = writer.top(message) if on_top else writer.message(role, message)
        except UnsupportedContent as error:
            unit.left_out = error.message
            told = translate.described(unit.message)
            unit.fragment = writer.top(told) if on_top else writer.message(role, told)
        return unit.fragment

    def _dropped(self, hash: str, reason: str, characters: int = 0) -> Decision:
        policy = self._policy
        guessed = policy.target.guessed
        return Decision("drop", "text", hash, policy.rule.id, reason, characters=characters, guessed=guessed)

    def _put(self, role: str, fragments: tuple[bytes, ...]) -> None:
        """Fragments in their place, with what a dialect of alternating roles writes before them."""
        writer, reached = self._writer, self.reached
        if not writer.alternates:
            self.fragments += fragments
            reached.messages += len(fragments)
            reached.role = role
            return
        for fragment in fragments:
            before, begun = writer.turn_over(reached.role, role)
            if self.anchor is not None and self.anchor[0] == len(self.fragments):
                self.first = writer.turn_over("", role)[0] + fragment
                # What goes on with a message that the provider keeps cannot go without it.
                self.anchor = self.anchor if begun else None
            self.fragments.append(before + fragment)
            reached.messages += begun
            reached.role = role

    def _add_bare(self, items: tuple[Bare, ...]) -> None:
        self.bare += items
        if self._prefix is not None:
            for item in items:
                self._prefix.add(bare_bytes(item, self._writer))

    def _add_response(self, unit: ResponseUnit, place: tuple[bool, ...], gone: str) -> None:
        reached = self.reached
        number = reached.responses
        at, prefix = self._next_index() if self._writer.alternates else reached.messages, self._prefix
        bound = prefix.against(unit, number, at, self._policy) if prefix is not None else ""
        key: Key = (place, at, self._repeated(unit) if unit.opaque else (), bound, gone)
        rendition = unit.memo
        if rendition is None or rendition.key != key:
            rendition = unit.memo = self._render(unit, key)
        _, message, results, bare, decisions, opaque, link, off, lifts, sizes, report, flat = rendition
        is_kept = prefix is not None and not flat and self._is_kept(unit, place, prefix)
        if message:
            self._put("user" if flat else "assistant", message)
            self._add_bare((bare,) if bare != b"" else ())
            if bare is not message[0]:
                self.carried += message
            if is_kept:
                self.anchor = len(self.fragments), reached.messages, unit.header.id
            if results:
                self._put("tool", results)
                self._add_bare(results)
        if link:
            self.chain = self.chain.add(number, link)
        reached.responses = number + 1
        if gone or not reached.first or unit.changes is not None:
            self._reach(unit, place, gone, is_sent=message != (), flat=flat)
        self.decisions += self._placed(decisions) if flat else decisions
        if opaque:
            self.opaque.update(dict.fromkeys(opaque))
        if off:
            self.off = True
        if lifts:
            self.lifts = True
        self.tally.add(sizes, report)

    def _placed(self, decisions: Sequence[Decision]) -> list[Decision]:
        """Decisions about what was put last: where it is told in the user's words, it may go on with a message."""
        at = self.reached.messages - 1
        return [each if each.message < 0 else msgspec.structs.replace(each, message=at) for each in decisions]

    def _reach(self, unit: ResponseUnit, place: tuple[bool, ...], gone: str, *, is_sent: bool, flat: bool) -> None:
        """What a response means for what follows it: the first one, one that people changed, or one that is gone."""
        reached, changes = self.reached, unit.changes
        if changes is not None:
            gone = gone or changes.gone
            self.change(changes.since(required=self._policy.stance(place).required))
        if gone:
            reached.leave(unit.hash, gone)
            return
        reached.began = True
        if is_sent and not reached.first:
            reached.first = "user" if flat else "calls" if unit.calls else "assistant"

    def _is_kept(self, unit: ResponseUnit, place: tuple[bool, ...], prefix: Prefix) -> bool:
        """Whether the provider keeps the conversation up to this response, and nothing that must stay away."""
        reached = self.reached
        # What the provider keeps it also reads, so what a setting takes away it must not keep.
        reached.stripped = reached.stripped or self._is_stripped(unit, place)
        return not reached.stripped and prefix.is_kept(unit, self._policy)

    def _is_stripped(self, unit: ResponseUnit, place: tuple[bool, ...]) -> bool:
        policy = self._policy
        if policy.server is None or not unit.thoughts:
            return False
        if unit.changes is None and not policy.stance(place).against:
            return False
        return policy.verdict(unit.header.origin).carriers

    def _next_index(self) -> int:
        """The index of the message that a response begins, or goes on with, where roles alternate."""
        reached = self.reached
        return reached.messages + self._writer.turn_over(reached.role, "assistant")[1] - 1

    def _repeated(self, unit: ResponseUnit) -> tuple[str, ...]:
        """The opaque values of a response that went out before it."""
        return tuple([value for value in unit.opaque if value in self._sent or value in self.opaque])

    def _render(self, unit: ResponseUnit, key: Key) -> Rendition:
        policy = self._policy
        place, at, repeated, bound, gone = key
        notes = Notes(policy, at)
        stored = unit if unit.changes is None else unit.changes.source
        size = reasoning, other, _ = size_of(stored)
        raw = reasoning + other
        if stored.results:
            raw += sum(len(result.content) for result in stored.results)
        report = NO_REPORT
        if unit.usage is not None and policy.calibrates(unit.header.origin):
            report = report_of(stored, size, policy.rule.reasoning_tokens)
        withheld = gone or unit.withheld or self._unsaid(unit)
        if withheld:
            withhold(unit, withheld, notes)
            return Rendition(key, (), (), b"", notes.decisions, [], "", False, False, (raw, reasoning, 0, 0), report)
        flat = _REFUSED if unit.hash in policy.flat else ""
        if not flat and policy.strict and policy.conflicts(place):
            raise ReplayRefused(
                f"reasoning.strict sends nothing, and {policy.target.endpoint.id} demands reasoning back",
                details={"rule": policy.rule.id, "model": policy.target.model},
                next_actions=("set reasoning.strict to false", "or go on with a model that demands none"),
            )
        stance, lifted = policy.stance(place), None
        if unit.changes is not None:
            other = size_of(unit)[1]
            lifted = _lifted(unit.changes, stance, place, policy)
        if flat:
            return self._flatten(unit, key, flat, (raw, reasoning, 0, 0), report)
        choice = decide(unit, stance, policy, self._invalid, repeated, notes, bound, lifted)
        if choice.flat:
            return self._flatten(unit, key, choice.flat, (raw, reasoning, 0, 0), report)
        if len(unit.thoughts) + len(unit.others) > 1 or stored is not unit:
            notes.sort(unit)
        message = self._writer.assistant(unit.header, choice.blocks, choice.carry)
        if not message:
            notes.take_back(_ALONE)
        if any(decision.part >= 0 for decision in notes.decisions):
            written = Written(self._writer, unit.header, choice, message)
            notes.decisions = [written.placed(decision) for decision in notes.decisions]
        plain = choice.carry is NOTHING and not (policy.form == "native" and unit.thoughts)
        bare: Bare = message[0] if plain and len(message) == 1 else (unit.header, without_thoughts(choice.blocks))
        results: tuple[bytes, ...] = ()
        answered = 0
        if unit.calls:
            answers = translate.answers(unit, choice.calls, policy.target.endpoint.dialect)
            results = self._writer.results(answers)
            answered = sum(len(result.content) for result in answers)
        sizes = (raw, reasoning, other + answered + notes.characters, notes.characters)
        link: Link = choice.link if message else ""
        off = choice.off
        lifts = False
        if lifted is not None and not place[0]:
            lifts = any(each.block and each.message >= 0 for each in notes.decisions)
        return Rendition(key, message, results, bare, notes.decisions, notes.opaque, link, off, lifts, sizes, report)

    def _flatten(self, unit: ResponseUnit, key: Key, why: str, sizes: Sizes, report: Report) -> Rendition:
        """A response as text in the user's words, which every endpoint takes; ``why`` it goes so."""
        notes = Notes(self._policy, key[1])
        withhold(unit, why, notes)
        text = translate.flattened(unit)
        message: tuple[bytes, ...] = ()
        if text:
            message = (self._writer.message("user", Message(text)),)
            notes.flat(unit.hash, why, len(text))
            sizes = sizes[0], sizes[1], len(text), 0
        bare = message[0] if message else b""
        return Rendition(key, message, (), bare, notes.decisions, [], "", False, False, sizes, report, True)

    def _unsaid(self, unit: ResponseUnit) -> str:
        """Why nothing stands for a response of reasoning alone that another model gave; empty where something does."""
        if unit.calls or not unit.thoughts or self._policy.settings.foreign != "drop":
            return ""
        if any(map(says, unit.blocks)):
            return ""
        verdict = self._policy.verdict(unit.header.origin)
        return "" if verdict.text or verdict.carriers else verdict.reason


def _lifted(changes: Changes, stance: Stance, place: tuple[bool, ...], policy: Policy) -> Stance | None:
    """What holds for reasoning that settings are against and an annotation asks for, if that lets it go."""
    if not changes.lifted or not stance.against:
        return None
    lifted = policy.lifted(place)
    return None if lifted.against else lifted
