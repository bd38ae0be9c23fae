"""The ``mistral`` dialect: chat completions whose content is a string or a list of chunks, thinking among them."""

from __future__ import annotations

from thinkback.wire.mistral import write
from thinkback.wire.mistral.chunks import read_failure
from thinkback.wire.mistral.options import options
from thinkback.wire.mistral.raw import raw_response
from thinkback.wire.mistral.read import Reader
from thinkback.wire.mistral.read_request import read_messages, read_request

__all__ = ["Reader", "options", "raw_response", "read_failure", "read_messages", "read_request", "write"]
