"""The ``openai-chat`` dialect: chat completions with any of the reasoning fields that hosts add to it."""

from __future__ import annotations

from thinkback.wire.dialect import PLAIN_TRACE, Dialect, no_report, role_of
from thinkback.wire.front import Front
from thinkback.wire.openai_chat import write
from thinkback.wire.openai_chat.chunks import read_failure
from thinkback.wire.openai_chat.parameters import PARAMETERS, options
from thinkback.wire.openai_chat.read import Reader, raw_response
from thinkback.wire.openai_chat.read_request import read_messages, read_request


def _front() -> Front:
    """Only a gateway needs it, so that it is imported when it is asked for."""
    from thinkback.wire.openai_chat.front import FRONT

    return FRONT


DIALECT = Dialect(
    name="openai-chat",
    maker="openai-chat",
    reasoning_by_host=True,
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
    front=_front,
)
