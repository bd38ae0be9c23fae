"""The ``gemini-interactions`` dialect: the Interactions API, whose histories are lists of steps."""

from __future__ import annotations

from thinkback.wire.gemini_interactions import write
from thinkback.wire.gemini_interactions.options import options
from thinkback.wire.gemini_interactions.raw import raw_response
from thinkback.wire.gemini_interactions.read import Reader
from thinkback.wire.gemini_interactions.read_request import read_messages, read_request
from thinkback.wire.google import read_failure

__all__ = ["Reader", "options", "raw_response", "read_failure", "read_messages", "read_request", "write"]
