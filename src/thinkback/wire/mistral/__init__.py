"""The ``mistral`` dialect: chat completions whose content is a string or a list of chunks, thinking among them."""

from __future__ import annotations

from thinkback.wire.dialect import PLAIN_TRACE, Dialect, no_report, role_of
from thinkback.wire.mistral import write
from thinkback.wire.mistral.chunks import read_failure
from thinkback.wire.mistral.parameters import PARAMETERS, options
from thinkback.wire.mistral.read import Reader, raw_response
from thinkback.wire.mistral.read_request import read_messages, read_request

DIALECT = Dialect(
    name="mistral",
    maker="mistral",
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
    trace=PLAIN_TRACE,
    front=None,
)
