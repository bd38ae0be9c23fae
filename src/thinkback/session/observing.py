"""What a session leaves in the usage log and in traces, and what its responses cost."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from thinkback.errors import MissingPackageError, RuleFileError
from thinkback.model.commits import Message, Usage
from thinkback.model.target import Settings
from thinkback.observe.cost import Cost, Prices, cost, cost_of, read
from thinkback.observe.usage_log import UsageLog, Watch
from thinkback.session import config
from thinkback.session.ids import outside
from thinkback.turn.spending import StepUse
from thinkback.turn.usage import token_use

if TYPE_CHECKING:
    from thinkback.drive import agenda
    from thinkback.log.protocol import SessionInfo
    from thinkback.model.deltas import Delta
    from thinkback.observe.spans import Spans
    from thinkback.turn import events
    from thinkback.turn.plan import Plan


class Together:
    """Several who are told what becomes of requests."""

    def __init__(self, *watches: agenda.Watch) -> None:
        self._watches = watches
        self.waits = False

    def sent(self, command: events.Send) -> None:
        """Tell all of them."""
        for watch in self._watches:
            watch.sent(command)
        self.waits = True

    def shown(self, deltas: Sequence[Delta]) -> None:
        """Tell those who wait."""
        for watch in self._watches:
            if watch.waits:
                watch.shown(deltas)
        self.waits = any(watch.waits for watch in self._watches)

    def notify(self, event: events.Event) -> None:
        """Tell all of them."""
        for watch in self._watches:
            watch.notify(event)

    def over(self) -> None:
        """Tell all of them."""
        for watch in self._watches:
            watch.over()


def watch_of(
    session: SessionInfo, log: UsageLog | None, message: Message | None, settings: Settings
) -> agenda.Watch | None:
    """Who is told of the requests of a turn; nobody where the settings want neither usage log nor spans."""
    spans = spans_of(settings) if settings.telemetry_spans else None
    own = watch(session.name, log, message, settings) if log is not None else None
    if spans is None:
        return own
    from thinkback.observe.span_watch import SpanWatch

    traced = SpanWatch(spans, session.id)
    return Together(own, traced) if own is not None else traced


_spans: dict[bool, Spans | None] = {}


def spans_of(settings: Settings) -> Spans | None:
    """Who makes spans; nobody, and a warning once, where OpenTelemetry is not installed."""
    content = settings.telemetry_content
    if content not in _spans:
        from thinkback.observe.spans import Spans

        try:
            _spans[content] = Spans(content=content)
        except MissingPackageError as error:
            _spans[content] = None
            warnings.warn("; ".join((error.message, *error.actions_for_people)), stacklevel=outside())
    return _spans[content]


def watch(session: str, log: UsageLog, message: Message | None, settings: Settings) -> Watch | None:
    """Who writes the lines of a turn; nobody where the settings do not want it."""
    if not settings.usage_log:
        return None
    try:
        own = own_prices()
    except RuleFileError as error:
        warnings.warn(error.message, stacklevel=outside())
        own = Prices()

    def priced(plan: Plan, usage: Usage, model: str, at: int) -> float | None:
        use = token_use(usage, (), plan.target.rule.reasoning_tokens)
        return cost(use, usage, plan.target.endpoint.id, model, at, own)

    prompt = (message.text if message is not None else "") if settings.usage_log_content else None
    return Watch(log, session, prompt, priced)


def costs(steps: Iterable[StepUse]) -> Cost:
    """What these steps cost, by what their providers report and by the prices of this machine."""
    return cost_of(steps, own_prices())


def own_prices() -> Prices:
    """The person's price file, read now. Raises ``RuleFileError``."""
    file = config.price_file()
    return read(*file) if file is not None else Prices()


def readable_prices() -> Prices | None:
    """The same; ``None`` for a file with a fault, which the commands that are about prices report."""
    try:
        return own_prices()
    except RuleFileError:
        return None


def usd_of(steps: Sequence[StepUse], own: Prices | None) -> float | None:
    """US dollars of ``steps``; ``None`` without prices, or where no step has one."""
    found = cost_of(steps, own) if own is not None else None
    return found.usd if found is not None and found.known else None
