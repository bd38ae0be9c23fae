"""Is a generateContent body of Google's schema? Names and types only; every name may be camelCase or snake_case.

The tables below hold the members of each message that the API documents. What is not in them is refused as the real
parser does, by name and place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from ..jsons import JsonObject, as_list, as_object
from ..verdict import Verdict
from .errors import refuse_name, refuse_value

DATA = (
    "text",
    "functionCall",
    "functionResponse",
    "inlineData",
    "fileData",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
)


def _members(names: str, **messages: str) -> Mapping[str, str]:
    """Member names to the message that a member holds (or holds a list of); empty where it holds plain values."""
    return MappingProxyType({**dict.fromkeys(names.split(), ""), **messages})


_MESSAGES: MappingProxyType[str, Mapping[str, str]] = MappingProxyType(
    {
        "request": _members(
            "safetySettings cachedContent labels model serviceTier store",
            contents="content",
            systemInstruction="content",
            tools="tool",
            toolConfig="toolConfig",
            generationConfig="generationConfig",
        ),
        "content": _members("role", parts="part"),
        "part": _members(
            "thought thoughtSignature videoMetadata mediaResolution partMetadata " + " ".join(DATA),
            functionCall="functionCall",
            functionResponse="functionResponse",
        ),
        "functionCall": _members("id name args partialArgs willContinue"),
        "functionResponse": _members("id name response parts willContinue scheduling"),
        "tool": _members(
            "googleSearch googleSearchRetrieval codeExecution computerUse urlContext fileSearch googleMaps retrieval "
            "enterpriseWebSearch mcpServers",
            functionDeclarations="declaration",
        ),
        "declaration": _members(
            "name description parameters parametersJsonSchema response responseJsonSchema behavior"
        ),
        "toolConfig": _members(
            "retrievalConfig includeServerSideToolInvocations", functionCallingConfig="functionCallingConfig"
        ),
        "functionCallingConfig": _members("mode allowedFunctionNames streamFunctionCallArguments"),
        "generationConfig": _members(
            "stopSequences responseMimeType responseSchema responseJsonSchema responseModalities candidateCount "
            "maxOutputTokens temperature topP topK seed presencePenalty frequencyPenalty responseLogprobs logprobs "
            "enableEnhancedCivicAnswers speechConfig imageConfig mediaResolution audioTimestamp routingConfig",
            thinkingConfig="thinkingConfig",
        ),
        "thinkingConfig": _members("includeThoughts thinkingBudget thinkingLevel"),
    }
)
_LISTS = frozenset({"contents", "parts", "tools", "functionDeclarations"})
_HUMP = re.compile(r"_([a-z0-9])")
_HEAD = re.compile(r"(?<!^)(?=[A-Z])")


def camel(name: str) -> str:
    """A member's name as the response would write it."""
    return _HUMP.sub(lambda match: match.group(1).upper(), name)


def read_body(body: Mapping[str, object]) -> JsonObject | Verdict:
    """The body with its own members' names in camelCase and nulls left out, or the refusal of what does not fit."""
    fault = next(_faults("request", body, ""), None)
    return fault if fault is not None else _renamed("request", body)


def _faults(message: str, value: Mapping[str, object], place: str) -> Iterator[Verdict]:
    members = _MESSAGES[message]
    for name, held in value.items():
        inside = members.get(camel(name))
        if inside is None:
            yield refuse_name(name, place)
        elif inside and held is not None:
            yield from _held_faults(inside, camel(name), held, _join(place, name))


def _held_faults(message: str, name: str, held: object, place: str) -> Iterator[Verdict]:
    if isinstance(held, list) and name in _LISTS:
        for index, item in enumerate(held):
            yield from _held_faults(message, "", item, f"{place}[{index}]")
    elif isinstance(held, dict):
        yield from _faults(message, held, place)
    else:
        yield refuse_value(place, "Object", held)


def _join(place: str, name: str) -> str:
    snake = _HEAD.sub("_", name).lower()
    return f"{place}.{snake}" if place else snake


def _renamed(message: str, value: Mapping[str, object]) -> JsonObject:
    members = _MESSAGES[message]
    return {camel(name): _renamed_held(members[camel(name)], held) for name, held in value.items() if held is not None}


def _renamed_held(message: str, held: object) -> object:
    if not message:
        return held
    if isinstance(held, list):
        return [_renamed(message, as_object(item)) for item in as_list(held)]
    return _renamed(message, as_object(held))
