"""The ``anthropic`` dialect: the Messages API, also as other hosts speak it."""

from __future__ import annotations

from thinkback.wire.anthropic import write
from thinkback.wire.anthropic.events import read_failure
from thinkback.wire.anthropic.options import options
from thinkback.wire.anthropic.raw import raw_response
from thinkback.wire.anthropic.read import Reader
from thinkback.wire.anthropic.read_request import read_messages, read_request
from thinkback.wire.anthropic.report import report

__all__ = ["Reader", "options", "raw_response", "read_failure", "read_messages", "read_request", "report", "write"]
