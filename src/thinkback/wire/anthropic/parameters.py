"""The parameters of a Messages request, by name."""

from __future__ import annotations

from typing import Any

from thinkback.wire.parameters import AUTO, UNIT, AnswerForm, Parameters, Reasoning, ToolChoice, same
from thinkback.wire.result import WantedOptions

PARAMETERS = Parameters(
    normal=None,
    names={
        **same("temperature", "top_p"),
        "end_user": ("metadata.user_id",),
        **same("max_tokens"),
        "stop": ("stop_sequences",),
        **same("top_k"),
    },
    read_only={},
    names_at={},
    ranges={"temperature": UNIT},
    longest_user=0,
    handled=frozenset({"stream"}),
    implied={"service_tier": AUTO, "output_config.format.type": ("text",)},
    refused=(),
    # Claude Code; a refusal on Vertex: anthropics/claude-code#82539. The effort of a message is a beta of Anthropic's.
    own=("diagnostics", "messages.output_config"),
    bare=frozenset(),
    choice=ToolChoice(
        path="tool_choice",
        words={"auto": {"type": "auto"}, "none": {"type": "none"}, "required": {"type": "any"}},
        one=lambda name: {"type": "tool", "name": name},
        several=None,
        parallel="",
        single="tool_choice.disable_parallel_tool_use",
    ),
    form=AnswerForm(paths=("output_config.format", "output_format"), read=None, json=None, about="", takes=frozenset()),
    reasoning=Reasoning(
        effort=("output_config.effort",),
        budget=("thinking.budget_tokens",),
        switch=("thinking.type",),
        shown=("thinking.display",),
        verbosity="",
        hidden_by_default=False,
    ),
)


def options(wanted: WantedOptions) -> dict[str, Any]:
    """Streaming, which always brings its usage, and the schema of the answer."""
    params: dict[str, Any] = {}
    if wanted.stream:
        params["stream"] = True
    if wanted.schema is not None:
        params["output_config"] = {"format": {"type": "json_schema", "schema": dict(wanted.schema)}}
    return params
