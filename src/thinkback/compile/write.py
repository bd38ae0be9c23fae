"""Write: turns to the messages of a request, one after the other.

The loop owns how far the messages are (``Cursor``), the digest of the prefix, the counts, and what goes out. What of a
response goes is for ``decide`` to say, what it looks like for the dialect's writer. Must not: change a unit.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
from collections.abc import Collection, Container, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from thinkback.compile import prefix_binding, translate
from thinkback.compile.counts import (
    Amount,
    Sent,
    Tally,
    counted_request,
    report_of,
    sent_amount,
    size_of,
    stored_amount,
    weigh,
    weigh_message,
)
from thinkback.compile.decide import Answer, Precedents, case_of, decide, lifted_stance, remarks_of
from thinkback.compile.decision_log import DecisionLog
from thinkback.compile.guard import Verdict
from thinkback.compile.persistent_list import LINES, PersistentList
from thinkback.compile.pieces import Case
from thinkback.compile.policy import Policy, ResponseContext
from thinkback.compile.prefix_binding import Link, Member, Prefix, Progress
from thinkback.compile.units import MessageUnit, ResponseUnit, Turn, says
from thinkback.errors import ReplayRefused, UnsupportedContent
from thinkback.model.blocks import Block, Text, ThinkingBlock, ToolResult
from thinkback.model.commits import Message, Response
from thinkback.model.plan import NOTHING, Writer
from thinkback.model.target import Decision

_REFUSED = "the exchange goes as text: the endpoint refused it in every other form"
BEHIND = (
    "context.systemChanges=append: it stands where it came, behind what was said before, so that reasoning bound to "
    "that stays valid; its program has it further in front"
)
RESULT_OF = "the result of "
"""How the reasons begin for a result without its call, and for a call without its result."""
_UNCALLED = RESULT_OF + "{}: its call is not in the request, so it goes as text of the user's"
_UNANSWERED = RESULT_OF + "{}: the request has none, so the model is told of an interruption"
NO_MEMBER = "not sent with the message, as the dialect has no name for it: "
UNCARRIED = "the dialect has no place for a part of this message: "
_ALONE = "its response says nothing else, and the dialect has no message for reasoning alone"
# How many of the messages that are left out an error names.
_NAMED = 3


class Bare(msgspec.Struct, frozen=True, gc=False):
    """A message without its reasoning, as what it is written from; only digests need its bytes."""

    header: Response
    blocks: tuple[Block, ...]


Plain: TypeAlias = bytes | Bare


class Cursor(msgspec.Struct):
    """How far the messages are: their number, the role of the last, and what they come to.

    ``began``: another message than a system message was among them; ``stripped``: a setting took away reasoning that
    the provider would keep. ``first`` is who said the first message that is no system message (``calls``: the
    assistant, with calls), ``left`` how many were left out before it, and ``named`` some of them. ``changed`` is the
    ``seq`` of the last commit that changed something, ``known`` how many messages are as they were when reasoning
    behind them was made, ``chain`` how the chain of bound reasoning stands. ``off``: one of them turns thinking off;
    ``lifts``: reasoning of one goes only because an annotation asks for it. A loop changes its own copy.
    """

    messages: int = 0
    left: int = 0
    known: int = 0
    changed: int = -1
    role: str = ""
    began: bool = False
    stripped: bool = False
    off: bool = False
    lifts: bool = False
    first: Literal["", "user", "assistant", "calls"] = ""
    named: tuple[str, ...] = ()
    chain: Progress = Progress()
    tally: Tally = msgspec.field(default_factory=Tally)

    def copy(self) -> Cursor:
        """A twin that may be changed."""
        twin = copy.copy(self)
        twin.tally = self.tally.copy()
        return twin

    def leave(self, hash: str, why: str) -> None:
        """One more message or response that does not go."""
        if not self.first:
            self.left += 1
            if len(self.named) < _NAMED:
                self.named += (f"{hash[:12]} ({why})",)


class Output:
    """What goes out: fragments, each message without its reasoning, messages with it, system messages, decisions, the
    opaque values that went, and the responses whose bound reasoning did.
    """

    def __init__(self) -> None:
        self.fragments: list[bytes] = []
        self.plain: list[Plain] = []
        self.carried: list[bytes] = []
        self.system: list[bytes] = []
        self.decisions: list[Decision] = []
        self.opaque: dict[str, None] = {}
        self.chain: list[Member] = []


class Anchor(NamedTuple):
    """The last response that the provider keeps: fragments and messages up to its end, and its id."""

    fragments: int
    messages: int
    response: str


class Key(msgspec.Struct, frozen=True):
    """What a response was written for.

    Its place, the index of its message, its opaque values that went out before, why what is bound to a prefix must stay
    away, and why all of it must.
    """

    place: ResponseContext
    at: int
    seen: tuple[str, ...]
    bound: str
    gone: str


class Written(msgspec.Struct, frozen=True, gc=False):
    """What a response was written to: its message or items, and those of its results (none where it is withheld).

    ``flat``: the message is text in the user's words, with the results in it.
    """

    decisions: list[Decision]
    sent: Sent
    message: tuple[bytes, ...] = ()
    results: tuple[bytes, ...] = ()
    plain: Plain = b""
    opaque: Sequence[str] = ()
    link: Link = ""
    off: bool = False
    lifts: bool = False
    flat: bool = False


class WrittenMessage(msgspec.Struct, frozen=True, gc=False):
    """What a system or user message was written to in its ``place``; ``left_out``: why a part of it was not,
    ``lost`` are members of its program's that were not.
    """

    place: str
    fragment: bytes
    left_out: str = ""
    lost: tuple[str, ...] = ()


class Cached(NamedTuple):
    """A response that may have to be written again, and what it was written to: good for this very unit and key."""

    unit: ResponseUnit
    key: Key
    written: Written


class Cache:
    """What was written of turns that may still change, of a turn that is settled nothing; and what was decided of
    responses of each kind.
    """

    def __init__(self) -> None:
        self.precedents: Precedents = {}
        self.responses: dict[str, Cached] = {}
        self.messages: dict[str, tuple[MessageUnit, WrittenMessage]] = {}

    def forget(self, turn: Turn) -> None:
        """The turn is settled."""
        for unit in turn.units:
            self.responses.pop(unit.hash, None)
            self.messages.pop(unit.hash, None)


class Loop:
    """Writes turns, in order, behind what ``before`` says; ``sent`` are the opaque values before them.

    ``prefix`` checks what is bound to a prefix, ``unfit`` is why some responses (commit hashes) are left out of that.
    ``anchor`` is the last response that the provider keeps, and ``resumed`` the fragment behind it where it must be
    written otherwise to begin an array. ``keeps``: what is written goes into the ``cache``. ``open_at`` is the index of
    the first message of the turn under way.
    """

    def __init__(
        self,
        policy: Policy,
        writer: Writer,
        before: Cursor,
        cache: Cache,
        sent: Container[str] = (),
        prefix: Prefix | None = None,
        unfit: Mapping[str, str] | None = None,
        *,
        keeps: bool = True,
    ) -> None:
        self._policy = policy
        self._writer = writer
        self._on_top = translate.on_top(policy.rule.system, writer)
        self._cache = cache
        self._keeps = keeps
        self._sent = sent
        self._prefix = prefix
        self._unfit = unfit or {}
        self.cursor = before.copy()
        self.out = Output()
        self.anchor: Anchor | None = None
        self.resumed = b""
        self.open_at = -1

    @property
    def is_on_top(self) -> bool:
        """Whether system messages stand outside the message array."""
        return self._on_top != "inline"

    def add(self, turn: Turn, *, is_open: bool, kept: Collection[str] | None, gone: str = "") -> None:
        """One more turn; ``kept`` are the responses that ``keepLast`` leaves their reasoning, ``None`` for all.

        ``gone`` is why nothing of it goes but its system messages and what is pinned.
        """
        units = turn.units
        pinned = turn.pinned if gone else ()
        used_tools = turn.used_tools
        last = units[-1]
        if is_open and self.open_at < 0:
            self.open_at = self.cursor.messages
        for unit in units:
            away = "" if gone and unit.hash in pinned else gone
            if isinstance(unit, MessageUnit):
                if unit.change is not None or away:
                    self._add_changed(unit, away)
                else:
                    self._add_message(unit, weigh_message(unit.message))
            else:
                stripped = kept is not None and not is_open and unit.hash not in kept
                place = ResponseContext(is_open, used_tools, stripped, unit is not last, unit.calls != ())
                self._add_response(unit, place, away)

    def change(self, at: int) -> None:
        """What follows does not stand behind what it was made behind, if it was made before ``at``."""
        self.cursor.changed = max(self.cursor.changed, at)

    # Messages

    def _add_changed(self, unit: MessageUnit, gone: str) -> None:
        """A message that people changed, or that is ``gone``."""
        stored = weigh_message(unit.message)
        if unit.change is not None:
            gone, stored = unit.change.gone or gone, unit.change.stored
            self.change(unit.change.at)
        if not gone or (unit.role == "system" and not (unit.change is not None and unit.change.gone)):
            self._add_message(unit, stored)
            return
        self.cursor.tally.raw.other += stored
        self.cursor.leave(unit.hash, gone)
        self.out.decisions.append(self._dropped(unit.hash, gone, stored))

    def _add_message(self, unit: MessageUnit, stored: int) -> None:
        cursor, message = self.cursor, unit.message
        cursor.tally.raw.other += stored
        cursor.tally.sent.other += stored if unit.change is None else weigh_message(message)
        if unit.result is not None and self._add_uncalled(unit, unit.result):
            return
        if self._is_of_another(message):
            self.out.decisions.append(self._dropped(unit.hash, f"a setting of a request in {message.dialect}"))
            return
        leads = unit.role == "system" and not cursor.began
        place = self._place_of(unit, leads=leads) if unit.role == "system" else "user"
        written = self._written_message(unit, place)
        if written.left_out:
            self.out.decisions.append(self._dropped(unit.hash, UNCARRIED + written.left_out))
        if written.lost:
            self.out.decisions.append(self._told(NO_MEMBER + ", ".join(written.lost), unit.hash, 0))
        fragment = written.fragment
        if message.before and self._policy.appends:
            self.out.decisions.append(self._told(BEHIND, unit.hash, len(message.text)))
        if place == "top":
            self.out.system.append(fragment)
            return
        if place == "system" and cursor.role == "tool" and self._policy.rule.after_results:
            told = self._writer.message("user", Message(self._policy.rule.after_results))
            self._put("user", (told,))
            self._add_plain(told)
        self._put(place, (fragment,))
        if leads:
            self.out.system.append(fragment)
            return
        if not cursor.first and place == "user":
            cursor.began, cursor.first = True, "user"
        self._add_plain(fragment)

    def _add_uncalled(self, unit: MessageUnit, result: ToolResult) -> bool:
        """A result without its call: ``True`` where it goes as its program wrote it, else it goes in words."""
        cursor = self.cursor
        if result.dialect != self._policy.target.endpoint.dialect:
            self.out.decisions.append(self._told(_UNCALLED.format(result.id), unit.hash, len(unit.message.text)))
            return False
        written = self._writer.results((result,))
        self._put("tool", written)
        for fragment in written:
            self._add_plain(fragment)
        if not cursor.first:
            cursor.began, cursor.first = True, "user"
        return True

    def _is_of_another(self, message: Message) -> bool:
        """Whether a message is a parameter that only another dialect puts among its messages."""
        return message.dialect not in ("", self._policy.target.endpoint.dialect) and translate.is_setting(message)

    def systems(self, turns: Sequence[Turn], cut: int) -> list[bytes]:
        """The system messages on top, or that stand first, of ``turns`` of which ``cut`` are left out but for them."""
        found: list[bytes] = []
        began = self.cursor.began
        pinned = frozenset[str]().union(*(turn.pinned for turn in turns[:cut]))
        for at, unit in ((at, unit) for at, turn in enumerate(turns) for unit in turn.units):
            if began and self._on_top != "top":
                break
            if unit.is_gone or (isinstance(unit, MessageUnit) and self._is_of_another(unit.message)):
                continue
            if isinstance(unit, MessageUnit) and unit.role == "system":
                place = self._place_of(unit, leads=not began)
                found += [self._written_message(unit, place).fragment] if place == "top" or not began else []
            else:
                began = began or at >= cut or unit.hash in pinned
        return found

    def _place_of(self, unit: MessageUnit, *, leads: bool) -> Literal["top", "system", "user"]:
        """Where a message stands: on top, or in which role; ``leads``: a system message that is first."""
        leads_on_top = self._on_top == "late" or (self._on_top == "lead" and self._writer.system_on_top)
        on_top = self._on_top == "top" or (leads_on_top and leads)
        message = unit.message
        if on_top and not leads and message.wire and message.dialect == self._policy.target.endpoint.dialect:
            on_top = False  # a program of this very dialect has it among the messages
        if on_top:
            return "top"
        # There may be no place for it among the messages.
        return "user" if self._on_top == "lead" and not leads else "system"

    def _written_message(self, unit: MessageUnit, place: Literal["top", "system", "user"]) -> WrittenMessage:
        if not self._keeps:
            return self._write_message(unit, place)
        known = self._cache.messages.get(unit.hash)
        if known is not None and known[0] is unit and known[1].place == place:
            return known[1]
        written = self._write_message(unit, place)
        self._cache.messages[unit.hash] = unit, written
        return written

    def _write_message(self, unit: MessageUnit, place: Literal["top", "system", "user"]) -> WrittenMessage:
        """The bytes of a message; of parts that this dialect cannot take only what they were is told."""
        writer, endpoint = self._writer, self._policy.target.endpoint
        try:
            message = translate.message(unit.message, endpoint.dialect)
            message = message if endpoint.developer else translate.as_system(message)
            if place not in ("top", unit.role):  # its own bytes say who it was
                message = msgspec.structs.replace(message, wire="")
            lost = translate.lost_members(unit.message, endpoint.dialect) if self._policy.settings.client else ()
            fragment = writer.top(message) if place == "top" else writer.message(place, message)
            return WrittenMessage(place, fragment, lost=lost)
        except UnsupportedContent as error:
            if self._policy.recipe > 1:
                return self._write_what_fits(unit.message, place, error.message)
            told = translate.described(unit.message)
            fragment = writer.top(told) if place == "top" else writer.message(place, told)
            return WrittenMessage(place, fragment, error.message)

    def _write_what_fits(self, message: Message, place: Literal["top", "system", "user"], why: str) -> WrittenMessage:
        """The bytes of a message with notes in place of the parts that this dialect cannot take, all of them named; of
        one that cannot go even so, in words alone, for the reason ``why``.
        """
        dialect, writer = self._policy.target.endpoint.dialect, self._writer

        def written(message: Message) -> bytes:
            fitted = translate.message(message, dialect)
            return writer.top(fitted) if place == "top" else writer.message(place, fitted)

        gone: dict[int, str] = {}
        for at, part in enumerate(message.parts):
            if not isinstance(part, Text):
                try:
                    written(Message("", (part,), dialect=message.dialect))
                except UnsupportedContent as error:
                    gone[at] = error.message
        named = "; ".join(dict.fromkeys(gone.values())) or why
        if len(gone) < sum(not isinstance(part, Text) for part in message.parts):
            with contextlib.suppress(UnsupportedContent):
                return WrittenMessage(place, written(translate.without_parts(message, gone)), named)
        return WrittenMessage(place, written(translate.described(message)), named)

    def _dropped(self, hash: str, reason: str, characters: int = 0) -> Decision:
        guessed = self._policy.target.guessed
        return Decision("drop", "text", hash, self._policy.rule.id, reason, characters=characters, guessed=guessed)

    def _told(self, reason: str, hash: str, characters: int) -> Decision:
        """That something goes as the text of the next message for ``reason``."""
        at, guessed = self.cursor.messages, self._policy.target.guessed
        return Decision("text", "text", hash, self._policy.rule.id, reason, at, characters=characters, guessed=guessed)

    def _put(self, role: str, fragments: tuple[bytes, ...]) -> None:
        """Fragments in their place, with what a dialect of alternating roles writes before them."""
        writer, cursor, out = self._writer, self.cursor, self.out.fragments
        if not writer.alternates:
            out += fragments
            cursor.messages += len(fragments)
            cursor.role = role
            return
        for fragment in fragments:
            before, begun = writer.turn_over(cursor.role, role)
            if self.anchor is not None and self.anchor.fragments == len(out):
                self.resumed = writer.turn_over("", role)[0] + fragment
                # What goes on with a message that the provider keeps cannot go without it.
                self.anchor = self.anchor if begun else None
            out.append(before + fragment)
            cursor.messages += begun
            cursor.role = role

    def _add_plain(self, item: Plain) -> None:
        self.out.plain.append(item)
        if self._prefix is not None:
            self._prefix.add(plain_bytes(item, self._writer))

    # Responses

    def _add_response(self, unit: ResponseUnit, place: ResponseContext, gone: str) -> None:
        cursor, out, prefix = self.cursor, self.out, self._prefix
        bound = self._bound(unit, prefix) if prefix is not None else ""
        written = self._written(unit, place, bound, gone)
        is_kept = prefix is not None and not written.flat and self._is_kept(unit, place, prefix)
        message = written.message
        if message:
            self._put("user" if written.flat else "assistant", message)
            self._add_plain(written.plain)
            if written.plain is not message[0]:
                out.carried += message
            if is_kept:
                self.anchor = Anchor(len(out.fragments), cursor.messages, unit.header.id)
            if written.results:
                self._put("tool", written.results)
                for result in written.results:
                    self._add_plain(result)
        if written.link and self._policy.rule.prefix_bound:
            self._chain(unit, written.link)
        if gone or not cursor.first or unit.changes is not None:
            self._reach(unit, place, gone, is_sent=message != (), flat=written.flat)
        out.decisions += self._placed(written.decisions) if written.flat else written.decisions
        if written.opaque:
            out.opaque.update(dict.fromkeys(written.opaque))
        cursor.off = cursor.off or written.off
        cursor.lifts = cursor.lifts or written.lifts
        tally = cursor.tally
        has_estimate = unit.minted is not None and unit.minted.size > 0
        if unit.usage is not None and not has_estimate and self._policy.calibrates(unit.header.origin):
            tally.counted = counted_request(unit, unit.usage, tally.sent.tokens) or tally.counted
        tally.raw.add(written.sent.raw)
        tally.sent.add(written.sent.sent)

    def _next_index(self) -> int:
        """The index of the message that a response begins, or goes on with, where roles alternate."""
        cursor, writer = self.cursor, self._writer
        return (
            cursor.messages + writer.turn_over(cursor.role, "assistant")[1] - 1
            if writer.alternates
            else cursor.messages
        )

    def _bound(self, unit: ResponseUnit, prefix: Prefix) -> str:
        """Why reasoning that is bound to its prefix must stay away, or nothing."""
        cursor = self.cursor
        if not prefix_binding.is_bound(unit, self._policy):
            return ""
        against = prefix_binding.against(unit, prefix, cursor.changed, cursor.known, self._policy.recipe)
        if against:
            return against
        cursor.known = self._next_index()
        return self._unfit.get(unit.hash, "")

    def _chain(self, unit: ResponseUnit, link: Link) -> None:
        """Advance the chain of bound reasoning by a response."""
        progress, minted = self.cursor.chain, unit.minted
        if link == "broken":
            self.cursor.chain = progress.leave_out()
            return
        behind = minted.chain if minted is not None and self._policy.recipe > 1 else None
        member = Member(unit.hash, prefix_binding.chain_digest(unit), behind, not progress.broken)
        self.cursor.chain = progress.add(member)
        self.out.chain.append(member)

    def _placed(self, decisions: Sequence[Decision]) -> list[Decision]:
        """Decisions about what was put last: where it is told in the user's words, it may go on with a message."""
        at = self.cursor.messages - 1
        return [each if each.message < 0 else msgspec.structs.replace(each, message=at) for each in decisions]

    def _reach(self, unit: ResponseUnit, place: ResponseContext, gone: str, *, is_sent: bool, flat: bool) -> None:
        """What a response means for what follows it: the first one, one that people changed, or one that is gone."""
        cursor, changes = self.cursor, unit.changes
        if changes is not None:
            gone = gone or changes.gone
            self.change(changes.since(required=self._policy.stance(place).required))
        if gone:
            cursor.leave(unit.hash, gone)
            return
        cursor.began = True
        if is_sent and not cursor.first:
            cursor.first = "user" if flat else "calls" if unit.calls else "assistant"

    def _is_kept(self, unit: ResponseUnit, place: ResponseContext, prefix: Prefix) -> bool:
        """Whether the provider keeps the conversation up to this response, and nothing that must stay away."""
        cursor = self.cursor
        # What the provider keeps it also reads, so what a setting takes away it must not keep.
        cursor.stripped = cursor.stripped or self._is_stripped(unit, place)
        return not cursor.stripped and prefix_binding.is_kept(unit, prefix, self._policy)

    def _is_stripped(self, unit: ResponseUnit, place: ResponseContext) -> bool:
        policy = self._policy
        if policy.server is None or not unit.thoughts:
            return False
        if unit.changes is None and not policy.stance(place).against:
            return False
        return policy.verdict(unit.header.origin).carriers

    def _written(self, unit: ResponseUnit, place: ResponseContext, bound: str, gone: str) -> Written:
        seen: tuple[str, ...] = ()
        if unit.opaque:
            seen = tuple([value for value in unit.opaque if value in self._sent or value in self.out.opaque])
        key = Key(place, self._next_index(), seen, bound, gone)
        cache = self._cache
        known = cache.responses.get(unit.hash) if self._keeps else None
        if known is not None and known.unit is unit and known.key == key:
            return known.written
        written = write(unit, key, self._policy, self._writer, cache.precedents)
        if self._keeps:
            cache.responses[unit.hash] = Cached(unit, key, written)
        return written


def write(unit: ResponseUnit, key: Key, policy: Policy, writer: Writer, precedents: Precedents) -> Written:
    """One response as it is written for ``key``. Raises ``ReplayRefused``."""
    stored = unit if unit.changes is None else unit.changes.source
    size, report = size_of(stored), None
    if unit.usage is not None and policy.calibrates(unit.header.origin):
        report = report_of(stored, size, policy.rule.reasoning_tokens)
    raw = stored_amount(size, report)
    raw.other += sum(weigh(result.content) for result in stored.results)
    verdict = policy.verdict(unit.header.origin)
    withheld = key.gone or unit.withheld or _unsaid(unit, policy, verdict)
    if withheld:
        log = DecisionLog(policy, key.at)
        log.withhold(unit, withheld)
        return Written(log.decisions, Sent(raw, Amount()))
    if unit.hash in policy.flat:
        return _flattened(unit, key, _REFUSED, policy, writer, raw)
    if policy.strict and policy.conflicts(key.place):
        raise ReplayRefused(
            f"reasoning.strict sends nothing, and {policy.target.endpoint.id} demands reasoning back",
            details={"rule": policy.rule.id, "model": policy.target.model},
            next_actions=("set reasoning.strict to false", "or go on with a model that demands none"),
        )
    case = case_of(unit, key.place, policy, verdict, key.seen, key.bound)
    answer = decide(case, precedents)
    if answer.flat:
        return _flattened(unit, key, answer.flat, policy, writer, raw)
    log, lifted = _logged(unit, key, case, answer)
    header, lost = _header(unit, policy, writer)
    if lost:
        log.tell(unit.hash, NO_MEMBER + ", ".join(lost))
    message = writer.assistant(header, answer.blocks, answer.carry)
    if not message:
        log.take_back(_ALONE)
    if answer.parts:
        log.decisions = [_placed(each, answer, message, header, writer) for each in log.decisions]
    if answer.carry is NOTHING and len(message) == 1 and not (policy.form == "native" and unit.thoughts):
        plain: Plain = message[0]
    else:
        plain = Bare(header, _without_thoughts(answer.blocks))
    other = size.other if stored is unit else size_of(unit).other
    counts = policy.rule.reads_open if key.place.is_open else policy.counts_later
    native, told = (log.native, log.told) if counts else (0, 0)
    goes = sent_amount(size, report, other, native, told)
    if counts and log.signed and not native and report is not None:
        goes.reasoning_tokens += report.reasoning or 0
    results: tuple[bytes, ...] = ()
    if unit.calls:
        dialect, client = policy.target.endpoint.dialect, policy.settings.client
        says = client not in ("", dialect) and policy.recipe > 1 and not writer.tells_errors
        lost_members = {name for result in unit.results for name in translate.lost_of_result(result, dialect)}
        if client and lost_members:
            log.tell(unit.hash, NO_MEMBER + ", ".join(sorted(lost_members)))
        given = translate.answers(
            unit, answer.calls, policy.target.endpoint.dialect, custom=policy.custom, says_errors=says
        )
        answers = _answered(given, policy, log)
        results = writer.results(answers) if answers else ()
        goes.other += sum(weigh(result.content) for result in answers)
    return Written(
        log.decisions,
        Sent(raw, goes),
        message,
        results,
        plain,
        log.opaque,
        answer.link if message else "",
        answer.off,
        lifted and any(each.block and each.message >= 0 for each in log.decisions),
    )


def _header(unit: ResponseUnit, policy: Policy, writer: Writer) -> tuple[Response, Sequence[str]]:
    """The header that a program's own message is written from in another dialect, and what of it is lost: an answer
    that the model is to continue is continued where the dialect has that.
    """
    header, dialect = unit.header, policy.target.endpoint.dialect
    if not header.message or header.origin.endpoint or policy.settings.client in ("", dialect):
        return header, ()
    lost = translate.lost_of(header.message)
    if not writer.prefill or translate.BEGINS.isdisjoint(lost):
        return header, lost
    if writer.prefill == "member":
        origin = msgspec.structs.replace(header.origin, dialect=dialect)
        header = msgspec.structs.replace(header, message=translate.CONTINUED, origin=origin)
    return header, [name for name in lost if name not in translate.BEGINS]


def _answered(answers: Sequence[ToolResult], policy: Policy, log: DecisionLog) -> Sequence[ToolResult]:
    """``answers`` as they go: of a program's calls without a result none in its own dialect, where the provider is to
    judge what was sent; in another dialect the words that stand in are named.
    """
    client = policy.settings.client
    if not client or all(result.status != "interrupted" for result in answers):
        return answers
    if client == policy.target.endpoint.dialect:
        return [result for result in answers if result.status != "interrupted"]
    log.stand_in_results([result for result in answers if result.status == "interrupted"], _UNANSWERED)
    return answers


def _logged(unit: ResponseUnit, key: Key, case: Case, answer: Answer) -> tuple[DecisionLog, bool]:
    """The decisions about a response, and whether reasoning of it in a finished turn goes only by an annotation."""
    changes = unit.changes
    if changes is None:
        log = DecisionLog(case.policy, key.at, parts=answer.parts)
        log.enter(answer.pieces)
        return log, False
    lifted = lifted_stance(changes, key.place, case.policy) is not None
    log = DecisionLog(
        case.policy, key.at, case.void, remarks_of(changes, required=case.stance.required, lifted=lifted), answer.parts
    )
    log.enter(answer.pieces)
    log.taken_away((*changes.away, *(() if case.stance.required else changes.edited.values())))
    log.sort(changes.source.hashes)
    return log, lifted and not key.place.is_open


def _flattened(unit: ResponseUnit, key: Key, why: str, policy: Policy, writer: Writer, raw: Amount) -> Written:
    """A response as text in the user's words, which every endpoint takes; ``why`` it goes so."""
    log = DecisionLog(policy, key.at)
    log.withhold(unit, why)
    text = translate.flattened(unit)
    if not text:
        return Written(log.decisions, Sent(raw, Amount()), flat=True)
    message = (writer.message("user", Message(text)),)
    log.flatten(unit.hash, why, len(text))
    sent = Sent(raw, Amount(weigh(text)))
    return Written(log.decisions, sent, message, plain=message[0], flat=True)


def _unsaid(unit: ResponseUnit, policy: Policy, verdict: Verdict) -> str:
    """Why nothing stands for a response of reasoning alone that another model gave; empty where something does."""
    if verdict.text or verdict.carriers or unit.calls or not unit.thoughts or policy.settings.foreign != "drop":
        return ""
    return "" if any(map(says, unit.blocks)) else verdict.reason


def _placed(
    decision: Decision, answer: Answer, message: tuple[bytes, ...], header: Response, writer: Writer
) -> Decision:
    """Where the block of ``decision`` stands: writers leave empty texts out and put neighbours together."""
    if decision.part < 0:
        return decision
    blocks, part = answer.blocks, decision.part
    if len(message) == 1:
        empty = [at for at in range(part) if isinstance(block := blocks[at], Text) and not block.text]
        left_out = [
            at for at in empty if writer.assistant(header, (*blocks[:at], *blocks[at + 1 :]), answer.carry) == message
        ]
        return msgspec.structs.replace(decision, part=part - len(left_out))
    # Where each block is an item of the array, the item's index says it all.
    alone = len(message) == len(blocks)
    item = part if alone else len(writer.assistant(header, blocks[: part + 1], answer.carry)) - 1
    return msgspec.structs.replace(decision, message=decision.message + item, part=-1)


def plain_bytes(item: Plain, writer: Writer) -> bytes:
    """The bytes of a message without its reasoning."""
    return item if isinstance(item, bytes) else b"\n".join(writer.assistant(item.header, item.blocks, NOTHING))


def hash_plain(items: PersistentList[Plain], writer: Writer) -> hashlib._Hash:
    """SHA-256 of messages without their reasoning, to be updated; only what is new is written and hashed."""
    known = items.hashed(LINES)
    hasher = known.hasher.copy()
    for batch in items.batches(known.length):
        hasher.update(LINES.join([plain_bytes(item, writer) for item in batch], leads=True))
    items.remember(LINES, hasher)
    return hasher


def _without_thoughts(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """What is left without reasoning, and without what ties it to its place."""
    left = [block for block in blocks if type(block) is not ThinkingBlock]
    return tuple([msgspec.structs.replace(block, carriers=()) if block.carriers else block for block in left])
