"""The ``openai-responses`` dialect: the Responses API of OpenAI and of the many hosts that speak it."""

from __future__ import annotations

from thinkback.wire.dialect import Dialect, Trace, role_or_type_of
from thinkback.wire.front import Front
from thinkback.wire.openai_responses import write
from thinkback.wire.openai_responses.events import read_failure
from thinkback.wire.openai_responses.parameters import PARAMETERS, options
from thinkback.wire.openai_responses.read import Reader, joined_thought, raw_response, report
from thinkback.wire.openai_responses.read_request import read_messages, read_request


def _front() -> Front:
    """Only a gateway needs it, so that it is imported when it is asked for."""
    from thinkback.wire.openai_responses.front import FRONT

    return FRONT


DIALECT = Dialect(
    name="openai-responses",
    maker="openai",
    reasoning_by_host=False,
    reader=Reader,
    writer=write,
    failure=read_failure,
    options=options,
    read_request=read_request,
    read_messages=read_messages,
    raw_response=raw_response,
    item_name=role_or_type_of,
    report=report,
    parameters=PARAMETERS,
    trace=Trace(empty_text=None, calls_without_id=False, blank_texts=False, readable=joined_thought),
    front=_front,
)
