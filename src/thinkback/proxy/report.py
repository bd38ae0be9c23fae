"""What is known of an exchange when it is over, or so far."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from thinkback.model.blocks import Block
from thinkback.model.commits import Draft, Response
from thinkback.turn.plan import Plan


class Report(msgspec.Struct, frozen=True):
    """What is known of an exchange, for a log, measures and spans. But for the last five, names and numbers alone.

    ``cache_missed_tokens`` an earlier request had in the prompt cache, and ``cache_collapse`` says why that are so many
    (a ``Cause``). ``failure`` is a kind of error, no text; ``reason`` says why an upstream was not asked, or did not
    answer. Tokens are ``None`` where nobody counted them. ``record`` is the hash of the record of what was sent.
    ``failed_over`` names the places that the request went to before, each with why it did not stay there.
    ``asked``, ``answered``, ``finish`` and ``header`` are what was said, ``plan`` what was sent last, by reference.
    """

    model: str = ""
    served: str = ""
    upstream: str = ""
    session: str = ""
    response: str = ""
    reattach: str = ""
    degraded: bool = False
    failure: str = ""
    reason: str = ""
    attempts: int = 0
    failed_over: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None
    cache_missed_tokens: int | None = None
    cache_collapse: str = ""
    record: str = ""
    asked: Sequence[Draft] = ()
    answered: Sequence[Block] = ()
    finish: str = ""
    header: Response | None = None
    plan: Plan | None = None
