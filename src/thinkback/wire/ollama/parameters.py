"""The parameters of a request to Ollama's own API, by name."""

from __future__ import annotations

from typing import Any

from thinkback.wire.parameters import AnswerForm, Parameters, Reasoning, under
from thinkback.wire.result import WantedOptions

PARAMETERS = Parameters(
    normal=None,
    names=under(
        "options",
        {
            "frequency_penalty": "frequency_penalty",
            "max_tokens": "num_predict",
            "presence_penalty": "presence_penalty",
            "seed": "seed",
            "stop": "stop",
            "temperature": "temperature",
            "top_k": "top_k",
            "top_p": "top_p",
        },
    ),
    read_only={},
    names_at={},
    ranges={},
    longest_user=0,
    handled=frozenset({"stream"}),
    implied={},
    refused=(),
    own=(),
    bare=frozenset(),
    choice=None,
    form=AnswerForm(paths=("format",), read=None, json={"format": "json"}, about="", takes=frozenset()),
    reasoning=Reasoning(
        effort=("think",), budget=(), switch=("think",), shown=(), verbosity="", hidden_by_default=False
    ),
)


def options(wanted: WantedOptions) -> dict[str, Any]:
    """Streaming, which Ollama does unless told not to, and the schema of the answer."""
    params: dict[str, Any] = {"stream": wanted.stream}
    if wanted.schema is not None:
        params["format"] = dict(wanted.schema)
    return params
