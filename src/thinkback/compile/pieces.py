"""What the passes of ``decide`` pass on: the pieces of a response, and the case that they are decided for.

Promises: a piece is never changed, a pass makes another one of it.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Literal, TypeAlias

import msgspec

from thinkback.compile.guard import Verdict
from thinkback.compile.policy import Policy, Stance
from thinkback.compile.units import ResponseUnit
from thinkback.model.blocks import Block, ThinkingBlock
from thinkback.model.rule import Form
from thinkback.model.target import DecisionAction

State: TypeAlias = Literal["beside", "open", "goes"] | DecisionAction
"""``beside``: no reasoning; ``open``: nothing is decided yet; ``goes``: that it goes is, and not yet how."""
Cause: TypeAlias = Literal[
    "",
    "skipped",
    "erased",
    "changed",
    "marker",
    "repeated",
    "invalid",
    "foreign",
    "bound",
    "not_kept",
    "empty",
    "unsigned",
    "sent",
    "twice",
    "against",
    "dangling",
    "no_place",
    "unfit",
    "thinking_off",
    "flatten",
]
"""Why a piece stays away, as a word. The last two are no block: they are done where reasoning is missing."""
LOST: frozenset[Cause] = frozenset({"erased", "changed", "invalid", "foreign", "bound", "not_kept"})
"""Genuine reasoning that could not be sent, so that it may be missing."""
BREAKS: frozenset[Cause] = frozenset({"erased", "changed", "skipped", "invalid", "bound", "sent"})
"""What leaves a gap in a chain of reasoning that must not have one."""


class Piece(msgspec.Struct, frozen=True, gc=False):
    """One block of a response, from the commit ``hash``; ``None`` for what stands in for one.

    ``state`` is what is decided, for the ``reason``, and ``cause`` that reason as a word where it stays away. ``out``
    is the block as it is written in its place, if it is. ``beside``: why its carriers stay away where only its text
    goes. ``away`` says of each carrier of what is no reasoning why it stays away, empty where it goes. ``text`` is what
    stands in; ``echoed``: its endpoint repeated the text of an entry in a field.
    """

    hash: str
    block: Block | None
    state: State
    out: Block | None = None
    reason: str = ""
    cause: Cause = ""
    beside: str = ""
    away: tuple[str, ...] = ()
    text: str = ""
    echoed: bool = False

    @property
    def thought(self) -> ThinkingBlock:
        """Its block, which is reasoning."""
        assert isinstance(self.block, ThinkingBlock)
        return self.block

    @property
    def action(self) -> DecisionAction:
        """What is done with it, when all passes have spoken."""
        state = self.state
        assert state != "open"
        assert state != "goes"
        assert state != "beside"
        return state

    def drop(self, reason: str, cause: Cause) -> Piece:
        """It stays away."""
        return Piece(self.hash, self.block, "drop", None, reason, cause)

    def go(self, state: State, reason: str, beside: str = "") -> Piece:
        """It goes, in a field beside the blocks."""
        return Piece(self.hash, self.block, state, None, reason, "", beside)

    def stay(self, state: State, reason: str) -> Piece:
        """It goes in its place."""
        return Piece(self.hash, self.block, state, self.block, reason)


class Case(msgspec.Struct, frozen=True, gc=False):
    """One response in its place: what every pass looks at.

    ``stance`` is what holds for its reasoning there, ``verdict`` the guard's answer for its origin, ``form`` how it
    goes. ``seen`` are those of its opaque values that went out before, ``bound`` is why reasoning that is bound to its
    prefix must stay away, ``void`` why nothing that it carries may go, ``unlifted`` why reasoning stays away that no
    annotation asks for, where one asks for other reasoning of it.
    """

    unit: ResponseUnit
    policy: Policy
    stance: Stance
    form: Form
    verdict: Verdict
    seen: Container[str] = ()
    bound: str = ""
    void: str = ""
    unlifted: str = ""

    @property
    def native(self) -> bool:
        """Whether reasoning goes back in its place, as the block it was."""
        return self.form == "native"

    @property
    def carries(self) -> bool:
        """Whether opaque values of it may go in a message field."""
        return self.verdict.carriers and not self.void

    @property
    def why_not(self) -> str:
        """Why not."""
        return self.void if self.verdict.carriers else self.verdict.reason

    @property
    def is_clients(self) -> bool:
        """Whether the program whose request is passed on wrote it in the target's own dialect, without any reasoning
        that its items are tied to: its items are the program's, and it names the model that is to read them.
        """
        unit, dialect = self.unit, self.policy.target.endpoint.dialect
        is_unknown = not unit.header.origin.endpoint and self.verdict.text and not unit.thoughts
        return is_unknown and self.policy.settings.client == dialect == unit.header.origin.dialect

    @property
    def same(self) -> bool:
        """Whether it was written in the target's dialect."""
        return self.unit.header.origin.dialect == self.policy.target.endpoint.dialect
