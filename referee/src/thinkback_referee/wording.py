"""Whose words a refusal has: the provider's, or the referee's own, where no provider's are known.

An answer in words that are known to be the referee's own says so in the header ``x-referee-wording``; clients must not
rely on them. Not listed throughout are credentials, and faults of form that are worded much alike everywhere (a body
that is no JSON, a member that is missing or of another type).
"""

from __future__ import annotations

import re

from .anthropic import parameters as anthropic
from .anthropic import shape
from .anthropic.profiles import BETWEEN_INSTEAD
from .anthropic.replay import INVALID_DATA, OTHER_MESSAGES
from .bedrock import plain
from .chat import parameters as chat
from .chat import replay as readable
from .chat.profiles import GROQ, MISTRAL, NO_INPUT_REASONING, OPENAI
from .cohere import profiles as cohere
from .gemini import profiles as gemini
from .gemini import signatures, structure
from .gemini_compat import fields, translate
from .interactions import judge as interactions
from .ollama import profiles as ollama
from .openrouter import judge as router
from .openrouter.profiles import CHANGED
from .responses import parameters as responses
from .responses import replay as items
from .verdict import Verdict

OWN = (
    *anthropic.OWN,
    *shape.OWN,
    BETWEEN_INSTEAD,
    INVALID_DATA,
    OTHER_MESSAGES,
    plain.BAD_EFFORT,
    plain.NO_LIMIT,
    chat.TWO_SWITCHES,
    chat.NOT_RAW,
    # Providers cannot tell a stranger's text from their own.
    readable.FOREIGN,
    readable.REPEATED,
    GROQ.changed,
    MISTRAL.changed,
    OPENAI.bad_effort,
    NO_INPUT_REASONING,
    *cohere.OWN,
    gemini.NO_THINKING,
    gemini.NO_BUDGET,
    signatures.REPEATED,
    signatures.MOVED,
    signatures.LATE_DUMMY,
    structure.LAST,
    structure.WRONG_ID,
    fields.BAD_ROLE,
    fields.BAD_CALL,
    fields.NO_MESSAGES,
    translate.BAD_EFFORT,
    # What Interactions says to a step that is missing or altered is not documented at all.
    *interactions.OWN,
    *ollama.OWN,
    *router.OWN,
    CHANGED,
    *responses.OWN,
    *items.OWN,
)
"""Texts of refusals, with names in braces for what differs."""


def is_own(verdict: Verdict) -> bool:
    """Whether a refusal is worded by the referee itself, also inside what a router or a platform says around it."""
    return any(_OWN.search(text) for text in (verdict.message, verdict.upstream))


def _pattern(text: str) -> str:
    return ".+?".join(map(re.escape, re.split(r"\{\w+\}", text)))


# At the end: providers' texts may begin alike.
_OWN = re.compile(rf"(?:{'|'.join(map(_pattern, OWN))})\Z", re.DOTALL)
