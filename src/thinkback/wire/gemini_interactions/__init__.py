"""The ``gemini-interactions`` dialect: the Interactions API, whose histories are lists of steps."""

from __future__ import annotations

from thinkback.wire.dialect import PLAIN_TRACE, Dialect, no_report, role_or_type_of
from thinkback.wire.gemini_interactions import write
from thinkback.wire.gemini_interactions.parameters import PARAMETERS, options
from thinkback.wire.gemini_interactions.read import Reader, raw_response
from thinkback.wire.gemini_interactions.read_request import read_messages, read_request
from thinkback.wire.google import read_failure

DIALECT = Dialect(
    name="gemini-interactions",
    maker="gemini-interactions",
    reasoning_by_host=False,
    reader=Reader,
    writer=write,
    failure=read_failure,
    options=options,
    read_request=read_request,
    read_messages=read_messages,
    raw_response=raw_response,
    item_name=role_or_type_of,
    report=no_report,
    parameters=PARAMETERS,
    trace=PLAIN_TRACE,
    front=None,
)
