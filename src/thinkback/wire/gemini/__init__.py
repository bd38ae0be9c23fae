"""The ``gemini`` dialect: ``generateContent`` and ``streamGenerateContent`` of AI Studio and Vertex."""

from __future__ import annotations

import re

from thinkback.wire.dialect import Dialect, Trace, no_report, role_of, thought
from thinkback.wire.front import Front
from thinkback.wire.gemini import write
from thinkback.wire.gemini.parameters import PARAMETERS, options
from thinkback.wire.gemini.read import Reader, raw_response
from thinkback.wire.gemini.read_request import read_messages, read_request
from thinkback.wire.google import read_failure


def _front() -> Front:
    """Only a gateway needs it, so that it is imported when it is asked for."""
    from thinkback.wire.gemini.front import FRONT

    return FRONT


DIALECT = Dialect(
    name="gemini",
    maker="gemini",
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
    trace=Trace(empty_text=re.compile(rb'"text"\s*:\s*""'), calls_without_id=True, blank_texts=False, readable=thought),
    front=_front,
)
