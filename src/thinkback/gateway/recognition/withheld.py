"""Conversations whose content is not recorded: their responses are kept apart, sealed and for a while.

Promises: nothing of what was said is read from the log, because it is not there; a response that ran out is missing and
said to be. Must not: keep anything unsealed, or for another tenant or scope.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from thinkback.gateway.recognition.attach import OF_A_RESPONSE
from thinkback.gateway.recognition.conversation import Found, InThread, Request, found_in
from thinkback.gateway.secrets.sealing import Sealer
from thinkback.gateway.storing import recording
from thinkback.log.protocol import Seen, Store
from thinkback.log.recognising import CANDIDATES
from thinkback.model.commits import Draft, Response, Step
from thinkback.stores.gateway_state.state import Carriers
from thinkback.turn.plan import History

_EXPIRED = "it is not kept any more"


class Withheld(NamedTuple):
    """Where responses are kept: ``keep_for`` so many seconds, sealed by ``sealer``. ``now`` is microseconds UTC."""

    carriers: Carriers
    sealer: Sealer
    keep_for: float
    now: Callable[[], int] = lambda: time.time_ns() // 1000

    async def find(self, request: Request, log: Store, tenant: str, scope: bytes, in_thread: InThread) -> Found:
        """As ``conversation.find``, with responses from here and everything else from the request."""
        seen = await found_in(request, log, scope, in_thread)
        places = {**seen.restored}
        if seen.base is not None:
            places |= await in_thread(partial(_on_the_line, request, log, scope, seen.base, seen.through))
        kept = await in_thread(partial(self._open, tenant, scope, {place.response for place in places.values()}))
        copies = {at: kept[place.response] for at, place in places.items() if place.response in kept}
        behind = dict(seen.missing)
        missing = [
            (at, behind.get(at, _EXPIRED if at in places else "unknown"))
            for at, message in enumerate(request.said)
            if message.speaker == "assistant" and at not in copies
        ]
        return Found(seen.base, History(), -1, copies, tuple(missing), seen.through)

    def keep(self, step: Step, tenant: str, scope: bytes) -> bool:
        """Keep the response in ``step``, if it came whole; that is done. Raises ``StoreError``."""
        header = next((draft for draft in step.drafts if draft.kind == "response"), None)
        if header is None or not isinstance(header.value, Response) or not header.value.complete:
            return True
        drafts = [
            draft
            for draft in step.drafts
            if draft.response == header.response and (draft.kind in OF_A_RESPONSE or draft.kind == "request")
        ]
        sealed = self.sealer.of("carriers").seal_bytes(recording.pack(drafts), scope)
        self.carriers.put(tenant, scope, {header.response: sealed}, self.now() + int(self.keep_for * 1_000_000))
        return True

    def _open(self, tenant: str, scope: bytes, responses: set[str]) -> dict[str, list[Draft]]:
        found: dict[str, list[Draft]] = {}
        sealer = self.sealer.of("carriers")
        for response, sealed in self.carriers.get(tenant, scope, sorted(responses), self.now()).items():
            data = sealer.open_bytes(sealed, scope)
            drafts = recording.unpack(data, response) if data is not None else []
            if drafts:
                found[response] = drafts
        return found


def _on_the_line(request: Request, log: Store, scope: bytes, base: Seen, through: int) -> dict[int, Seen]:
    """The responses of the messages up to ``through``: those of the line that ends with ``base``."""
    line = {commit.response for commit in log.read_to(base.session, base.head.hash) if commit.kind == "response"}
    answers = [at for at, message in enumerate(request.said[: through + 1]) if message.speaker == "assistant"]
    rows: Sequence[Seen] = log.recognition.lookup(scope, [request.links[at] for at in answers], CANDIDATES)
    found: dict[int, Seen] = {}
    for at in answers:
        there = {row.response: row for row in rows if row.digest == request.links[at] and row.response in line}
        if len(there) == 1:
            (found[at],) = there.values()
    return found
