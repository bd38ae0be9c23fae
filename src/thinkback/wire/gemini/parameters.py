"""The parameters of ``generateContent``, by name, and Google's own kind of schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from thinkback.model.target import lookup
from thinkback.wire.parameters import (
    KEPT_ELSEWHERE,
    NO_LOGPROBS,
    ONE_ANSWER,
    ONLY_TEXT,
    AnswerForm,
    Form,
    Parameters,
    Params,
    Reasoning,
    Refusal,
    ToolChoice,
    is_not_one,
    is_not_text,
    is_set,
    under,
)
from thinkback.wire.result import WantedOptions

# What of the parameters has members of Google's own: schemas, labels and settings of others keep their names.
_TREE: dict[str, Any] = {
    "generationConfig": {"thinkingConfig": {}},
    "toolConfig": {"functionCallingConfig": {}},
}
_MIME = "generationConfig.responseMimeType"
# Google writes these as text, because they are 64 bits wide.
_COUNTS = frozenset({"maxItems", "maxLength", "maxProperties", "minItems", "minLength", "minProperties"})


def camel(params: Params, tree: dict[str, Any] = _TREE) -> Params:
    """``params`` with the names of JSON, where a client wrote those of protocol buffers (``generation_config``)."""
    told: Params = {}
    for key, value in params.items():
        first, *others = key.split("_")
        name = first + "".join(word[:1].upper() + word[1:] for word in others)
        told[name] = camel(value, tree[name]) if name in tree and isinstance(value, dict) else value
    return told


def read_form(params: Params) -> tuple[Form | None, frozenset[str]]:
    """The form of the answer, and the paths that say it."""
    mime = lookup(params, _MIME)
    if mime not in ("application/json", "text/x.enum"):
        return None, frozenset({_MIME} if mime == "text/plain" else ())
    for name in ("responseJsonSchema", "responseSchema"):
        path = f"generationConfig.{name}"
        schema = lookup(params, path)
        if isinstance(schema, dict):
            return Form(schema if name == "responseJsonSchema" else json_schema(schema)), frozenset({_MIME, path})
    return Form(), frozenset({_MIME})


def json_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema of Google's own kind as JSON Schema: small letters, ``null`` as a type, numbers as numbers."""
    told: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "type" and isinstance(value, str):
            told[key] = value.lower()
        elif key in ("propertyOrdering", "property_ordering", "nullable"):
            continue
        elif key == "properties" and isinstance(value, dict):
            told[key] = {name: json_schema(one) if isinstance(one, dict) else one for name, one in value.items()}
        elif key in ("anyOf", "any_of") and isinstance(value, list):
            told["anyOf"] = [json_schema(one) if isinstance(one, dict) else one for one in value]
        elif isinstance(value, dict) and key == "items":
            told[key] = json_schema(value)
        elif key in _COUNTS and isinstance(value, str) and value.isdecimal():
            told[key] = int(value)
        else:
            told[key] = value
    if schema.get("nullable") is True and isinstance(told.get("type"), str):
        told["type"] = [told["type"], "null"]
    return told


PARAMETERS = Parameters(
    normal=camel,
    names=under(
        "generationConfig",
        {
            "frequency_penalty": "frequencyPenalty",
            "max_tokens": "maxOutputTokens",
            "presence_penalty": "presencePenalty",
            "seed": "seed",
            "stop": "stopSequences",
            "temperature": "temperature",
            "top_k": "topK",
            "top_p": "topP",
        },
    ),
    read_only={"end_user": ("labels.user_id", "labels.user")},
    names_at={},
    ranges={},
    longest_user=0,
    handled=frozenset(),
    implied={
        "generationConfig.candidateCount": (1,),
        "generationConfig.responseLogprobs": (False,),
        "generationConfig.responseModalities": (["TEXT"], ["text"]),
    },
    refused=(
        Refusal("cachedContent", KEPT_ELSEWHERE, is_set),
        Refusal("generationConfig.candidateCount", ONE_ANSWER, is_not_one),
        Refusal("generationConfig.logprobs", NO_LOGPROBS, is_set),
        Refusal("generationConfig.responseLogprobs", NO_LOGPROBS, is_set),
        Refusal("generationConfig.responseModalities", ONLY_TEXT, is_not_text),
    ),
    own=(),
    bare=frozenset(),
    choice=ToolChoice(
        path="toolConfig.functionCallingConfig",
        words={"auto": {"mode": "AUTO"}, "none": {"mode": "NONE"}, "required": {"mode": "ANY"}},
        one=lambda name: {"mode": "ANY", "allowedFunctionNames": [name]},
        several=lambda word, names: {
            "mode": "ANY" if word == "required" else "VALIDATED",
            "allowedFunctionNames": list(names),
        },
        parallel="",
        single="",
    ),
    form=AnswerForm(
        paths=(),
        read=read_form,
        json={"generationConfig": {"responseMimeType": "application/json"}},
        about="",
        takes=frozenset(),
    ),
    reasoning=Reasoning(
        effort=("generationConfig.thinkingConfig.thinkingLevel",),
        budget=("generationConfig.thinkingConfig.thinkingBudget",),
        switch=(),
        shown=("generationConfig.thinkingConfig.includeThoughts",),
        verbosity="",
        hidden_by_default=True,
    ),
)


def options(wanted: WantedOptions) -> dict[str, Any]:
    """The schema of the answer. Whether the response streams is said by the URL; usage always comes."""
    if wanted.schema is None:
        return {}
    answer = {"responseMimeType": "application/json", "responseJsonSchema": dict(wanted.schema)}
    return {"generationConfig": answer}
