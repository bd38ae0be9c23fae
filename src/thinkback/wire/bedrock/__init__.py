"""The ``bedrock`` dialect: AWS Bedrock's Converse and ConverseStream, for the models of any maker."""

from __future__ import annotations

from thinkback.wire.bedrock import write
from thinkback.wire.bedrock.events import read_failure
from thinkback.wire.bedrock.parameters import PARAMETERS, options
from thinkback.wire.bedrock.read import Reader, raw_response
from thinkback.wire.bedrock.read_request import read_messages, read_request
from thinkback.wire.dialect import Dialect, Trace, no_report, role_of, thought

DIALECT = Dialect(
    name="bedrock",
    maker="bedrock",
    reasoning_by_host=False,
    reader=Reader,
    writer=write,
    failure=read_failure,
    options=options,
    read_request=read_request,
    read_messages=read_messages,
    raw_response=raw_response,
    item_name=role_of,
    report=no_report,
    parameters=PARAMETERS,
    trace=Trace(empty_text=None, calls_without_id=False, blank_texts=True, readable=thought),
    front=None,
)
