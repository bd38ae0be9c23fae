"""The judge: a request body, who sends it and the ledger, to a verdict. Pure; no I/O.

The checks run in the order of the list below and the first refusal is the verdict: shape before pairs, parameters
before thinking, genuineness before fit.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..jsons import JsonObject
from ..verdict import ACCEPTED, Verdict
from . import pairs, parameters, replay, shape
from .ledger import Ledger
from .profiles import Profile
from .request import Caller, Request
from .trace import trace
from .unsigned import not_passed_back


def judge(profile: Profile, body: JsonObject, caller: Caller, ledger: Ledger) -> Verdict:
    """The verdict on a request to the profile's model; reads the ledger and changes nothing."""
    fault = shape.malformed(caller, profile.late_system, body)
    if fault is not None:
        return fault
    request = Request(profile, body, caller)
    return next((verdict for verdict in _verdicts(request, ledger) if verdict is not None), ACCEPTED)


def _verdicts(request: Request, ledger: Ledger) -> Iterator[Verdict | None]:
    yield pairs.unpaired(request)
    yield parameters.refused_parameter(request)
    if not request.caller.host.signed:
        yield not_passed_back(request, ledger)
        return
    yield pairs.ends_in_thinking(request)
    yield replay.prefilled(request, ledger)
    yield replay.starts_wrong(request, ledger)
    yield replay.not_genuine(request, ledger)
    found = trace(request, ledger)
    yield replay.modified(request, ledger, found)
    yield replay.bound_elsewhere(request, found)
    yield replay.missing(request, found)
