"""Whose words a refusal has: the provider's, or the referee's own, where no provider's are known.

The header ``x-referee-wording`` of a refusal says ``own`` where its words are known to be the referee's, and ``form``
where it is about a key or a fault of form (a body that is no JSON, a member that is missing, unknown or of another
type): those are worded as the provider words such faults as far as that is known, and no source stands for each.
Clients must not rely on either. Without the header the words are documented or reported.
"""

from __future__ import annotations

import re
from typing import Literal

from .personas import PROVIDERS
from .verdict import Verdict


def wording(verdict: Verdict) -> Literal["own", "form", ""]:
    """What the header says of a verdict; nothing for a refusal in the provider's words, and where nothing is refused.

    What a refusal is about is told by its reason.
    """
    if verdict.ok:
        return ""
    if is_own(verdict):
        return "own"
    is_of_form = _FORM.match(verdict.reason) and not _OF_REASONING.search(verdict.reason)
    return "form" if is_of_form else ""


def is_own(verdict: Verdict) -> bool:
    """Whether a refusal is worded by the referee itself, also inside what a router or a platform says around it."""
    return any(_OWN.search(text) for text in (verdict.message, verdict.upstream))


def _pattern(text: str) -> str:
    return ".+?".join(map(re.escape, re.split(r"\{\w+\}", text)))


# At the end: providers' texts may begin alike.
_TEXTS = [_pattern(text) for provider in PROVIDERS.values() for text in provider.own]
_OWN = re.compile(rf"(?:{'|'.join(_TEXTS)})\Z", re.DOTALL)
_FORM = re.compile(
    r"unauthorized|invalid JSON|\w+ is not an? |no \w+$|bad |unexpected |unnamed |misplaced |empty |missing (?!at )"
    r"|unknown (?!model|response|interaction|previous)"
)
_OF_REASONING = re.compile("reasoning|think|thought|signature|effort|budget|detail|previous")
