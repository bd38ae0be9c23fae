"""Claude's Messages API as a persona: signed, redacted and preserved thinking, with the provider's own refusals.

``Anthropic`` is the persona. The modules below it know nothing of HTTP, so that Bedrock's persona judges and mints
with them too.
"""

from __future__ import annotations

from .persona import VERSION, Anthropic, organisation
from .profiles import BINDING_BETA, CLEARING_BETA, COUNTING_BETA, INTERLEAVED_BETA, UPDATES_BETA
from .render import REDACTED

__all__ = [
    "BINDING_BETA",
    "CLEARING_BETA",
    "COUNTING_BETA",
    "INTERLEAVED_BETA",
    "REDACTED",
    "UPDATES_BETA",
    "VERSION",
    "Anthropic",
    "organisation",
]
