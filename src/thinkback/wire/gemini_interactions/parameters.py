"""The parameters of an interaction, by name."""

from __future__ import annotations

from typing import Any

from thinkback.wire.parameters import AnswerForm, Parameters, Reasoning, ToolChoice, under
from thinkback.wire.result import WantedOptions

PARAMETERS = Parameters(
    normal=None,
    names=under(
        "generation_config",
        {
            "max_tokens": "max_output_tokens",
            "seed": "seed",
            "stop": "stop_sequences",
            "temperature": "temperature",
            "top_p": "top_p",
        },
    ),
    read_only={},
    names_at={},
    ranges={},
    longest_user=0,
    handled=frozenset({"stream", "store"}),
    implied={},
    refused=(),
    own=(),
    bare=frozenset(),
    choice=ToolChoice(
        path="generation_config.tool_choice",
        words={"auto": "auto", "none": "none", "required": "any"},
        one=lambda name: {"allowed_tools": {"mode": "any", "tools": [name]}},
        several=lambda word, names: {
            "allowed_tools": {"mode": "any" if word == "required" else "validated", "tools": list(names)}
        },
        parallel="",
        single="",
    ),
    form=AnswerForm(
        paths=("response_format",),
        read=None,
        json={"response_format": {"type": "text", "mime_type": "application/json"}},
        about="",
        takes=frozenset(),
    ),
    reasoning=Reasoning(
        effort=("generation_config.thinking_level",),
        budget=(),
        switch=(),
        shown=("generation_config.thinking_summaries",),
        verbosity="",
        hidden_by_default=False,
    ),
)


def options(wanted: WantedOptions) -> dict[str, Any]:
    """Streaming, and the schema of the answer; usage always comes."""
    params: dict[str, Any] = {"stream": True} if wanted.stream else {}
    if wanted.schema is not None:
        params["response_format"] = {"type": "text", "mime_type": "application/json", "schema": dict(wanted.schema)}
    return params
