"""The ``openai-responses`` dialect: the Responses API of OpenAI and of the many hosts that speak it."""

from __future__ import annotations

from thinkback.wire.openai_responses import write
from thinkback.wire.openai_responses.events import read_failure
from thinkback.wire.openai_responses.options import options
from thinkback.wire.openai_responses.raw import raw_response
from thinkback.wire.openai_responses.read import Reader
from thinkback.wire.openai_responses.read_request import read_messages, read_request
from thinkback.wire.openai_responses.report import report

__all__ = ["Reader", "options", "raw_response", "read_failure", "read_messages", "read_request", "report", "write"]
