"""The parameters of a Converse request, by name."""

from __future__ import annotations

from typing import Any

from thinkback.model import canonical
from thinkback.wire.parameters import UNIT, AnswerForm, Parameters, Reasoning, ToolChoice, under
from thinkback.wire.result import WantedOptions

PARAMETERS = Parameters(
    normal=None,
    names=under(
        "inferenceConfig",
        {"max_tokens": "maxTokens", "temperature": "temperature", "top_p": "topP", "stop": "stopSequences"},
    ),
    read_only={},
    names_at={},
    ranges={"temperature": UNIT},
    longest_user=0,
    handled=frozenset(),
    implied={},
    refused=(),
    own=(),
    bare=frozenset(),
    choice=ToolChoice(
        path="toolConfig.toolChoice",
        words={"auto": {"auto": {}}, "required": {"any": {}}},
        one=lambda name: {"tool": {"name": name}},
        several=None,
        parallel="",
        single="",
    ),
    form=AnswerForm(paths=("outputConfig.textFormat",), read=None, json=None, about="", takes=frozenset()),
    reasoning=Reasoning(
        effort=(
            "additionalModelRequestFields.output_config.effort",
            "additionalModelRequestFields.reasoning_effort",
            "additionalModelRequestFields.reasoning_config",
            "outputConfig.effort",
        ),
        budget=("additionalModelRequestFields.thinking.budget_tokens",),
        switch=("additionalModelRequestFields.thinking.type",),
        shown=("additionalModelRequestFields.thinking.display",),
        verbosity="",
        hidden_by_default=False,
    ),
)


def options(wanted: WantedOptions) -> dict[str, Any]:
    """The schema of the answer, as source text. Whether to stream is said by the address, and usage always comes."""
    if wanted.schema is None:
        return {}
    schema = {"name": wanted.schema_name, "schema": canonical.source(dict(wanted.schema))}
    return {"outputConfig": {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": schema}}}}
