"""The parameters of a request, by name."""

from __future__ import annotations

from typing import Any

from thinkback.wire.parameters import UNIT, AnswerForm, Parameters, Reasoning, ToolChoice, same
from thinkback.wire.result import WantedOptions

PARAMETERS = Parameters(
    normal=None,
    names={
        **same("presence_penalty", "frequency_penalty", "max_tokens", "seed"),
        "stop": ("stop_sequences",),
        **same("temperature"),
        "top_k": ("k",),
        "top_p": ("p",),
    },
    read_only={},
    names_at={},
    ranges={
        "frequency_penalty": UNIT,
        "presence_penalty": UNIT,
        "temperature": UNIT,
        "top_k": (0, 500),
        "top_p": (0.01, 0.99),
    },
    longest_user=0,
    handled=frozenset({"stream"}),
    implied={},
    refused=(),
    own=(),
    bare=frozenset(),
    choice=ToolChoice(
        path="tool_choice",
        words={"none": "NONE", "required": "REQUIRED"},
        one=None,
        several=None,
        parallel="",
        single="",
    ),
    form=AnswerForm(
        paths=("response_format",),
        read=None,
        json={"response_format": {"type": "json_object"}},
        about="",
        takes=frozenset(),
    ),
    reasoning=Reasoning(
        effort=(),
        budget=("thinking.token_budget",),
        switch=("thinking.type",),
        shown=(),
        verbosity="",
        hidden_by_default=False,
    ),
)


def options(wanted: WantedOptions) -> dict[str, Any]:
    """Streaming, which always brings its usage, and the schema of the answer, which has no name here."""
    params: dict[str, Any] = {"stream": True} if wanted.stream else {}
    if wanted.schema is not None:
        params["response_format"] = {"type": "json_object", "json_schema": dict(wanted.schema)}
    return params
