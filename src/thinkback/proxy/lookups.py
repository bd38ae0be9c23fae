"""What an exchange looks up in a log, answered by that log."""

from __future__ import annotations

from typing import Any, TypeAlias, assert_never

from thinkback.log.protocol import Store
from thinkback.proxy.events import LookUp, ReadHistory, ReadLines
from thinkback.turn.plan import History

Asked: TypeAlias = LookUp | ReadLines | ReadHistory


def answer(log: Store, question: Asked) -> Any:
    """What ``log`` answers. Raises ``StoreError``."""
    match question:
        case LookUp():
            return log.recognition.lookup(question.scope, question.digests, question.most)
        case ReadLines(places=places):
            return {place: log.read_to(*place) for place in places}
        case ReadHistory():
            epoch = log.epoch()
            return History(log.read_to(question.session, question.head), epoch)
        case _:
            assert_never(question)
