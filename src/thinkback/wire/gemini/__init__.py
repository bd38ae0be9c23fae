"""The ``gemini`` dialect: ``generateContent`` and ``streamGenerateContent`` of AI Studio and Vertex."""

from __future__ import annotations

from thinkback.wire.gemini import write
from thinkback.wire.gemini.options import options
from thinkback.wire.gemini.raw import raw_response
from thinkback.wire.gemini.read import Reader
from thinkback.wire.gemini.read_request import read_messages, read_request
from thinkback.wire.google import read_failure

__all__ = ["Reader", "options", "raw_response", "read_failure", "read_messages", "read_request", "write"]
