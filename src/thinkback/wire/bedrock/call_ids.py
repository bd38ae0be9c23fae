"""Ids of calls as Converse takes them."""

from __future__ import annotations

import hashlib
import re

# Kimi's ids (``functions.name:0``) come from Bedrock and are taken back by it: hence the dot and the colon.
_FITS = re.compile(r"[a-zA-Z0-9_.:-]{1,64}")


def call_id(id: str) -> str:
    """``id`` if it fits, else one made of it: always the same."""
    if _FITS.fullmatch(id):
        return id
    return "tooluse_" + hashlib.sha256(id.encode("utf-8", "surrogatepass")).hexdigest()[:32]
