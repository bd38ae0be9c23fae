"""The ``ollama`` dialect: Ollama's own ``/api/chat``, a JSON object or one per line."""

from __future__ import annotations

from thinkback.wire.dialect import Dialect, Trace, no_report, role_of, thought
from thinkback.wire.ollama import write
from thinkback.wire.ollama.lines import read_failure
from thinkback.wire.ollama.parameters import PARAMETERS, options
from thinkback.wire.ollama.read import Reader, raw_response
from thinkback.wire.ollama.read_request import read_messages, read_request

DIALECT = Dialect(
    name="ollama",
    maker="ollama-native",
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
