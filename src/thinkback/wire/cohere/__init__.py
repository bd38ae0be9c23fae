"""The ``cohere`` dialect: Cohere's chat, version 2."""

from __future__ import annotations

from thinkback.wire.cohere import write
from thinkback.wire.cohere.events import read_failure
from thinkback.wire.cohere.options import options
from thinkback.wire.cohere.raw import raw_response
from thinkback.wire.cohere.read import Reader
from thinkback.wire.cohere.read_request import read_messages, read_request

__all__ = ["Reader", "options", "raw_response", "read_failure", "read_messages", "read_request", "write"]
