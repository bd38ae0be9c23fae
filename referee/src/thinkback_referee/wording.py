"""Whose words a refusal has: the provider's, or the referee's own, where no provider's are known.

An answer in words that are known to be the referee's own says so in the header ``x-referee-wording``; clients must not
rely on them. Not listed throughout are credentials, and faults of form that are worded much alike everywhere (a body
that is no JSON, a member that is missing or of another type).
"""

from __future__ import annotations

import re

from .personas import PROVIDERS
from .verdict import Verdict


def is_own(verdict: Verdict) -> bool:
    """Whether a refusal is worded by the referee itself, also inside what a router or a platform says around it."""
    return any(_OWN.search(text) for text in (verdict.message, verdict.upstream))


def _pattern(text: str) -> str:
    return ".+?".join(map(re.escape, re.split(r"\{\w+\}", text)))


# At the end: providers' texts may begin alike.
_TEXTS = [_pattern(text) for provider in PROVIDERS.values() for text in provider.own]
_OWN = re.compile(rf"(?:{'|'.join(_TEXTS)})\Z", re.DOTALL)
