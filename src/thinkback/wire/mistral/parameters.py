"""The parameters of a request, by name."""

from __future__ import annotations

from typing import Any

from thinkback.wire.parameters import PLAIN, AnswerForm, Parameters, Reasoning, ToolChoice, function, same
from thinkback.wire.result import WantedOptions

PARAMETERS = Parameters(
    normal=None,
    names={
        **same("temperature", "top_p", "presence_penalty", "frequency_penalty", "max_tokens"),
        "seed": ("random_seed",),
        **same("stop"),
    },
    read_only={},
    names_at={},
    ranges={"temperature": (0, 1.5)},
    longest_user=0,
    handled=frozenset({"stream"}),
    implied={},
    refused=(),
    own=(),
    bare=frozenset(),
    choice=ToolChoice(
        path="tool_choice",
        words={**PLAIN, "required": "any"},
        one=function,
        several=None,
        parallel="parallel_tool_calls",
        single="",
    ),
    form=AnswerForm(
        paths=("response_format",),
        read=None,
        json={"response_format": {"type": "json_object"}},
        about="response_format.json_schema",
        takes=frozenset({"strict"}),
    ),
    reasoning=Reasoning(
        effort=("reasoning_effort",), budget=(), switch=(), shown=(), verbosity="", hidden_by_default=False
    ),
)


def options(wanted: WantedOptions) -> dict[str, Any]:
    """Streaming, whose usage comes unasked and cannot be asked for, and the schema of the answer."""
    params: dict[str, Any] = {}
    if wanted.stream:
        params["stream"] = True
    if wanted.schema is not None:
        schema = {"name": wanted.schema_name, "schema": dict(wanted.schema)}
        params["response_format"] = {"type": "json_schema", "json_schema": schema}
    return params
