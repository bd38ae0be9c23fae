"""The ``openai-chat`` dialect: chat completions with any of the reasoning fields that hosts add to it."""

from __future__ import annotations

from thinkback.wire.openai_chat import write
from thinkback.wire.openai_chat.chunks import read_failure
from thinkback.wire.openai_chat.options import options
from thinkback.wire.openai_chat.raw import raw_response
from thinkback.wire.openai_chat.read import Reader
from thinkback.wire.openai_chat.read_request import read_messages, read_request

__all__ = ["Reader", "options", "raw_response", "read_failure", "read_messages", "read_request", "write"]
