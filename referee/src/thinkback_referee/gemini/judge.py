"""The judge: a request body and the ledger, to a verdict. Pure; the first refusal counts, shape before signatures."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..verdict import ACCEPTED, Verdict
from . import parameters, signatures, structure
from .ledger import Ledger
from .profiles import Host, Profile
from .request import Request
from .schema import read_body

_SHAPE: tuple[Callable[[Request], Verdict | None], ...] = (
    structure.malformed,
    parameters.no_thinking,
    parameters.both_controls,
    parameters.bad_level,
    parameters.bad_budget,
    parameters.bad_switch,
    structure.unpaired,
)
_REPLAY: tuple[Callable[[Request, Ledger], Verdict | None], ...] = (
    signatures.missing,
    signatures.changed,
    signatures.moved,
    signatures.late_dummy,
    signatures.repeated,
)


def judge(host: Host, profile: Profile, body: Mapping[str, object], ledger: Ledger) -> Verdict:
    """The verdict on a request to the model; reads the ledger and changes nothing."""
    read = read_body(body)
    return read if isinstance(read, Verdict) else judge_request(Request(host, profile, read), ledger)


def judge_request(request: Request, ledger: Ledger) -> Verdict:
    """The verdict on a request whose names are known to be right."""
    for check in _SHAPE:
        if (verdict := check(request)) is not None:
            return verdict
    for rule in _REPLAY:
        if (verdict := rule(request, ledger)) is not None:
            return verdict
    return ACCEPTED
