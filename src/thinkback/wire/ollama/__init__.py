"""The ``ollama`` dialect: Ollama's own ``/api/chat``, a JSON object or one per line."""

from __future__ import annotations

from thinkback.wire.ollama import write
from thinkback.wire.ollama.lines import read_failure
from thinkback.wire.ollama.options import options
from thinkback.wire.ollama.raw import raw_response
from thinkback.wire.ollama.read import Reader
from thinkback.wire.ollama.read_request import read_messages, read_request

__all__ = ["Reader", "options", "raw_response", "read_failure", "read_messages", "read_request", "write"]
