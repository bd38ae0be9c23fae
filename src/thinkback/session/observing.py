"""What a session leaves in the usage log, and what its responses cost."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING

from thinkback.errors import RuleFileError
from thinkback.model.commits import Message, Usage
from thinkback.model.target import Settings
from thinkback.observe.cost import Cost, Prices, cost, cost_of, read
from thinkback.observe.usage_log import UsageLog, Watch
from thinkback.session import config
from thinkback.session.ids import outside
from thinkback.turn.spending import StepUse
from thinkback.turn.usage import token_use

if TYPE_CHECKING:
    from thinkback.turn.plan import Plan


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
