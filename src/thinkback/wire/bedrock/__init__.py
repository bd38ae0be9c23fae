"""The ``bedrock`` dialect: AWS Bedrock's Converse and ConverseStream, for the models of any maker."""

from __future__ import annotations

from thinkback.wire.bedrock import write
from thinkback.wire.bedrock.events import read_failure
from thinkback.wire.bedrock.options import options
from thinkback.wire.bedrock.raw import raw_response
from thinkback.wire.bedrock.read import Reader
from thinkback.wire.bedrock.read_request import read_messages, read_request

__all__ = ["Reader", "options", "raw_response", "read_failure", "read_messages", "read_request", "write"]
