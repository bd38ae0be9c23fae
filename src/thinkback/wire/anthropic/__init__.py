"""The ``anthropic`` dialect: the Messages API, also as other hosts speak it."""

from __future__ import annotations

from thinkback.wire.anthropic import write
from thinkback.wire.anthropic.events import read_failure
from thinkback.wire.anthropic.parameters import PARAMETERS, options
from thinkback.wire.anthropic.read import Reader, raw_response, report
from thinkback.wire.anthropic.read_request import read_messages, read_request
from thinkback.wire.dialect import PLAIN_TRACE, Dialect, role_of
from thinkback.wire.front import Front


def _front() -> Front:
    """Only a gateway needs it, so that it is imported when it is asked for."""
    from thinkback.wire.anthropic.front import FRONT

    return FRONT


DIALECT = Dialect(
    name="anthropic",
    maker="anthropic",
    reasoning_by_host=False,
    reader=Reader,
    writer=write,
    failure=read_failure,
    options=options,
    read_request=read_request,
    read_messages=read_messages,
    raw_response=raw_response,
    item_name=role_of,
    report=report,
    parameters=PARAMETERS,
    trace=PLAIN_TRACE,
    front=_front,
)
