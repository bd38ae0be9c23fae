"""A strict stand-in for reasoning providers, with their replay rules and their own error texts.

It imports nothing else of this project: a judge that shares the accused's code proves nothing. ``Referee`` serves it,
``judge`` is its pure core, ``Step`` scripts a model.
"""

from __future__ import annotations

from .chat.judge import judge, required_indices
from .chat.ledger import Ledger, Mint
from .chat.profiles import PROFILES, Host, Profile, profile_for
from .credentials import BAD_KEY
from .guide import guide_step
from .house import KNOWN, LOST, code_word
from .personas import HOSTS, models_of
from .played import read_script
from .script import (
    Call,
    CutAfterBytes,
    Duplicate,
    ErrorInStream,
    Fault,
    HttpError,
    MalformedJson,
    NoDone,
    RejectCarrier,
    Script,
    Stall,
    Step,
    Swapped,
)
from .server import Exchange, Referee, serve
from .verdict import Verdict

__all__ = [
    "BAD_KEY",
    "HOSTS",
    "KNOWN",
    "LOST",
    "PROFILES",
    "Call",
    "CutAfterBytes",
    "Duplicate",
    "ErrorInStream",
    "Exchange",
    "Fault",
    "Host",
    "HttpError",
    "Ledger",
    "MalformedJson",
    "Mint",
    "NoDone",
    "Profile",
    "Referee",
    "RejectCarrier",
    "Script",
    "Stall",
    "Step",
    "Swapped",
    "Verdict",
    "code_word",
    "guide_step",
    "judge",
    "models_of",
    "profile_for",
    "read_script",
    "required_indices",
    "serve",
]
