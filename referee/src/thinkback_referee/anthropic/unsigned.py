"""DeepSeek's endpoint in this format: thinking is unsigned text, and its absence is an error.

The rule is that of its chat endpoint: while it thinks, all messages of turns with calls, and every message once tools
are offered, must carry what it thought. Altered text is refused with the same words; the real one cannot tell.
"""

from __future__ import annotations

from ..verdict import Verdict
from .ledger import Ledger
from .refusals import refuse
from .request import Message, Request

PASSED_BACK = "The `content[].thinking` in the thinking mode must be passed back to the API."


def not_passed_back(request: Request, ledger: Ledger) -> Verdict | None:
    """Refuse messages whose thinking is missing or is not what was minted."""
    if not request.thinking_on:
        return None
    for message in request.assistants:
        texts = {block.text for block in message.thinking}
        minted = {seal.text for answer in ledger.answers(message) for seal in answer.seals}
        if texts and minted and not texts <= minted:
            return refuse(PASSED_BACK, f"changed at messages.{message.index}")
        if not texts and _wanted(request, message):
            return refuse(PASSED_BACK, f"missing at messages.{message.index}")
    return None


def _wanted(request: Request, message: Message) -> bool:
    with_calls = {other.turn for other in request.assistants if other.calls}
    return bool(request.body.get("tools")) or message.turn in with_calls
