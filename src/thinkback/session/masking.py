"""Keys taken out of texts that people and programs are shown."""

from __future__ import annotations

import os
import re
import sys

_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
_SHORTEST_SECRET = 8


def without_keys(text: str) -> str:
    """``text`` without the value of any environment variable that is named like a secret, and without the keys that
    were found elsewhere.
    """
    keys = sys.modules.get("thinkback.session.config.keys")
    named = {name: value.strip() for name, value in os.environ.items() if _SECRET_NAME.search(name)}
    for name, secret in {**(keys.seen if keys is not None else {}), **named}.items():
        if len(secret) >= _SHORTEST_SECRET:
            # an error may quote it as it is, or as Python writes it
            text = text.replace(secret, f"<{name}>").replace(repr(secret)[1:-1], f"<{name}>")
    return text
