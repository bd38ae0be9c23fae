"""The line under the prompt: model, effort, context, reasoning, cost, cache hits. Worked out once per turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from thinkback.errors import ThinkbackError
from thinkback.observe.cost import Cost
from thinkback.session.transcripts.ink import clean, columns_of
from thinkback.turn.spending import Ledger

if TYPE_CHECKING:
    from thinkback.session.session import Session
    from thinkback.turn.spending import StepUse

_THOUSAND, _MILLION = 1_000, 1_000_000
# From there on cents are enough.
_CENTS = 0.1


class Meter:
    """Follows the use of one line, commit by commit, so that a long session costs no more per turn than a short one."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self._ledger = Ledger()
        self._at, self._head = 0, ""
        self._priced, self._cost = 0, Cost(0.0, 0, 0)

    def steps(self, session: Session) -> list[StepUse]:
        """The steps on the way to where ``session`` stands."""
        commits = session.log()
        if self._at > len(commits) or (self._at and commits[self._at - 1].hash != self._head):
            self._forget()
        self._ledger.take(commits[self._at :])
        self._at, self._head = len(commits), commits[-1].hash if commits else ""
        return self._ledger.steps

    def cost(self, session: Session) -> Cost:
        """What these steps cost. Raises ``RuleFileError`` for a price file that cannot be read."""
        steps = self.steps(session)
        if self._priced < len(steps):
            was, more = self._cost, session.usage.cost(steps[self._priced :])
            self._priced = len(steps)
            self._cost = Cost(was.usd + more.usd, was.known + more.known, was.unknown + more.unknown)
        return self._cost


def line(session: Session, meter: Meter, columns: int = 80) -> str:
    """The status of ``session`` for ``columns``, in plain text; parts that nobody knows, or that do not fit, are left
    out, the last ones first.
    """
    steps = meter.steps(session)
    used = [step.use for step in steps]
    reasoning = sum(use.reasoning or 0 for use in used)
    about = "~" if any(use.estimated for use in used) else ""
    read = sum(use.input or 0 for use in used)
    cached = sum(use.cached or 0 for use in used)
    model, endpoint = _place(session)
    mode = session.settings.display_reasoning
    known = [
        model,
        f"effort {session.settings.effort or 'default'}",
        f"thinking {mode}" if mode != "collapsed" else "",
        _context(session),
        f"reasoning {about}{short(reasoning)}" if reasoning else "",
        dollars(meter.cost(session)),
        f"cached {100 * cached // read} %" if read and cached else "",
    ]
    parts = [clean(part) for part in known if part]
    whole = " · ".join([f"{parts[0]} ({endpoint})" if endpoint else parts[0], *parts[1:]])
    if columns_of(whole) <= columns:
        return whole
    while len(parts) > 1 and columns_of(" · ".join(parts)) > columns:
        del parts[-1]
    return " · ".join(parts)


def dollars(cost: Cost) -> str:
    """``$0.0012``, with a plus where a part is not known; nothing where no part is."""
    if not cost.known:
        return ""
    digits = 2 if cost.usd >= _CENTS else 4
    return f"${cost.usd:.{digits}f}{'+' if cost.unknown else ''}"


def short(tokens: int) -> str:
    """``812``, ``12.3k``, ``1.2M``."""
    if tokens < _THOUSAND:
        return str(tokens)
    unit, letter = (_THOUSAND, "k") if tokens < _MILLION else (_MILLION, "M")
    return f"{tokens / unit:.1f}".removesuffix(".0") + letter


def _place(session: Session) -> tuple[str, str]:
    """Model and endpoint."""
    place = session.conversation.configure().place
    if not place.is_complete:
        return "no model yet: /endpoint ID, /model NAME", ""
    return place.model, session.target.endpoint.id


def _context(session: Session) -> str:
    if not session.conversation.configure().place.is_complete:
        return ""
    try:
        counts = session.usage.context()
    except ThinkbackError:  # the next request would be refused; that is told when it is asked for
        return ""
    return f"context {short(counts.effective)}/{short(counts.limit) if counts.limit else '?'}"
