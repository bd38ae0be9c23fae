"""The judge: a request body, the model it is meant for and the ledger, to a verdict. Pure; no I/O.

The checks run in the order of the list below and the first refusal is the verdict, as at the providers: shape before
pairs, parameters before reasoning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..verdict import ACCEPTED, Verdict
from . import parameters, replay, structure
from .ledger import Ledger
from .profiles import Profile
from .request import Request

_PARAMETERS: tuple[Callable[[Request], Verdict | None], ...] = (
    structure.unpaired,
    structure.ends_wrong,
    parameters.tools_unsupported,
    parameters.forced_choice,
    parameters.pinned_temperature,
    parameters.unknown_parameter,
    parameters.bad_effort,
    parameters.bad_switch,
    parameters.clashing_format,
)
_REPLAY: tuple[Callable[[Request, Ledger], Verdict | None], ...] = (
    replay.missing,
    replay.changed,
    replay.foreign,
    replay.repeated,
)


def judge(profile: Profile, body: Mapping[str, object], ledger: Ledger) -> Verdict:
    """The verdict on a request to the profile's model; reads the ledger and changes nothing."""
    verdict = structure.malformed(profile, body)
    if verdict is not None:
        return verdict
    request = Request(profile, body)
    for check in _PARAMETERS:
        if (verdict := check(request)) is not None:
            return verdict
    for rule in _REPLAY:
        if (verdict := rule(request, ledger)) is not None:
            return verdict
    return ACCEPTED


def required_indices(profile: Profile, body: Mapping[str, object]) -> frozenset[int]:
    """Indices of the messages whose reasoning the provider requires back in this (well-formed) request."""
    return Request(profile, body).required
