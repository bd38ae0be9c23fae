"""A strict stand-in for reasoning providers, with their replay rules and their own error texts.

It imports nothing else of this project: a judge that shares the accused's code proves nothing. ``Referee`` serves it,
``judge`` is its pure core, ``Step`` scripts a model.
"""

from __future__ import annotations

from .house import KNOWN, LOST, code_word
from .judge import judge, required_indices
from .ledger import Ledger, Mint
from .profiles import HOSTS, PROFILES, Host, Profile, models_of, profile_for
from .script import (
    Call,
    CutAfterBytes,
    ErrorInStream,
    Fault,
    HttpError,
    MalformedJson,
    NoDone,
    Script,
    Stall,
    Step,
)
from .server import BAD_KEY, Exchange, Referee, serve
from .verdict import Verdict

__all__ = [
    "BAD_KEY",
    "HOSTS",
    "KNOWN",
    "LOST",
    "PROFILES",
    "Call",
    "CutAfterBytes",
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
    "Script",
    "Stall",
    "Step",
    "Verdict",
    "code_word",
    "judge",
    "models_of",
    "profile_for",
    "required_indices",
    "serve",
]
