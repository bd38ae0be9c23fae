"""Python functions as tools: what the model is told of them, and what it is told back."""

from __future__ import annotations

import enum
import functools
import json
from collections.abc import Callable
from typing import Annotated, Any, Literal

import msgspec
import pytest

from thinkback.drive.tools import (
    PythonTool,
    ToolOutput,
    bind,
    offered,
    python_tool,
    result_text,
    run_async_tool,
    run_tool,
)
from thinkback.errors import ToolDefinitionError, ToolFailed
from thinkback.model.blocks import ToolCall
from thinkback.model.commits import Tool

NO_OBJECT = "The arguments do not fit the tool: they must be an object"


class Unit(enum.Enum):
    C = "celsius"
    F = "fahrenheit"


class Place(msgspec.Struct):
    """A place on earth."""

    city: str
    country: str = "NO"


def weather(
    city: str,
    days: int = 1,
    unit: Unit = Unit.C,
    detail: Literal["short", "long"] = "short",
    near: list[Place] = [],  # noqa: B006
) -> str:
    """The weather of a city,
    for some days.

    Only the first paragraph is told.
    """
    return f"{city} {days} {unit.value} {detail} {[place.city for place in near]}"


def nothing() -> None:
    """No parameters."""


def call(name: str, arguments: str) -> ToolCall:
    return ToolCall("c1", name, arguments)


def run(function: Callable[..., Any], arguments: str) -> tuple[str, bool]:
    """What the model is told of one call."""
    tool = python_tool(function)
    return run_tool({tool.tool.name: tool}, call(tool.tool.name, arguments))[:2]


def test_definition_comes_from_the_signature() -> None:
    """Name, first paragraph and a schema with types, defaults and required names."""
    tool = python_tool(weather).tool
    assert ("weather", "The weather of a city, for some days.") == (tool.name, tool.description)
    schema = json.loads(tool.parameters)
    assert ("object", ["city"], False) == (schema["type"], schema["required"], schema["additionalProperties"])
    assert {"city", "days", "unit", "detail", "near"} == set(schema["properties"])
    assert {"type": "integer", "default": 1} == schema["properties"]["days"]
    assert {"Place", "Unit"} == set(schema["$defs"])


def test_function_without_parameters_has_an_empty_schema() -> None:
    """An object with no properties; the reference to it is resolved."""
    assert {"type": "object", "properties": {}, "required": [], "additionalProperties": False} == (
        json.loads(python_tool(nothing).tool.parameters)
    )


def test_annotations_are_kept() -> None:
    """Descriptions and bounds of ``Annotated`` reach the model."""

    def roll(sides: Annotated[int, msgspec.Meta(ge=2, description="how many")]) -> int:
        return sides

    schema = json.loads(python_tool(roll).tool.parameters)
    assert {"type": "integer", "minimum": 2, "description": "how many"} == schema["properties"]["sides"]
    assert run(roll, '{"sides":1}')[1]


def test_method_is_a_tool() -> None:
    """A bound method is called on its object."""

    class Counter:
        def __init__(self) -> None:
            self.count = 0

        def add(self, by: int) -> int:
            self.count += by
            return self.count

    counter = Counter()
    assert ("3", False) == run(counter.add, '{"by":3}')
    assert 3 == counter.count


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ('{"city":"Oslo"}', "Oslo 1 celsius short []"),
        (
            '{"city":"Oslo","days":2,"unit":"fahrenheit","detail":"long","near":[{"city":"Moss"}]}',
            "Oslo 2 fahrenheit long ['Moss']",
        ),
        ('{"city":"Oslo","days":"2"}', "Oslo 2 celsius short []"),
    ],
)
def test_arguments_are_checked_and_converted(arguments: str, told: str) -> None:
    """Enums and structs arrive as such, defaults fill in, numbers in quotation marks are read."""
    assert (told, False) == run(weather, arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        '{"days":1}',
        '{"city":7}',
        '{"city":"Oslo","moon":1}',
        '{"city":',
        "[]",
        "null",
        '{"city":"Oslo","days":"many"}',
        '{"city":"Oslo","days":"\\ud83d"}',
        '{"city":"Oslo","\\ud83d":1}',
    ],
)
def test_wrong_arguments_are_told_to_the_model(arguments: str) -> None:
    """The function is not called; the model hears what is wrong."""
    content, is_error = run(weather, arguments)
    assert is_error
    assert content.startswith(("The arguments do not fit the tool: ", "The arguments are not valid JSON: "))


def test_no_arguments_at_all_are_none() -> None:
    """Some models send an empty string."""
    assert ("null", False) == run(nothing, "")


def test_mutable_default_is_not_shared() -> None:
    """Each call gets a list of its own."""

    def collect(item: str, into: list[str] = []) -> list[str]:  # noqa: B006
        into.append(item)
        return into

    tool = python_tool(collect)
    tools = {"collect": tool}
    assert ['["a"]', '["b"]'] == [run_tool(tools, call("collect", f'{{"item":"{item}"}}')).content for item in "ab"]


def test_unknown_tool_is_told_to_the_model() -> None:
    """It may have made the name up."""
    assert ("There is no tool named 'peek'.", True) == run_tool({}, call("peek", "{}"))[:2]
    assert "There is no tool named 'peek'." == bind(None, call("peek", "{}"))


@pytest.mark.parametrize("error", [ValueError("no such city"), SystemExit(3)])
def test_what_a_tool_raises_is_told_to_the_model(error: BaseException) -> None:
    """A tool cannot end the turn, nor the program."""

    def fail() -> None:
        raise error

    assert (f"{type(error).__name__}: {error}", True) == run(fail, "{}")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("as it is", "as it is"),
        (b"bytes \xff", "bytes \ufffd"),
        (None, "null"),
        ({"b": [1, 2.5]}, '{"b":[1,2.5]}'),
        (Place("Oslo"), '{"city":"Oslo","country":"NO"}'),
        (1 + 2j, "(1+2j)"),
    ],
)
def test_result_is_text(value: object, text: str) -> None:
    """Text as it is, what JSON can hold as JSON, everything else as Python shows it."""
    assert text == result_text(value)


@pytest.mark.parametrize(
    "function",
    [
        lambda city: city,
        functools.partial(weather, days=2),
        max,
        lambda *args: args,
    ],
)
def test_function_that_cannot_be_offered_is_refused(function: Callable[..., Any]) -> None:
    """Without a name or a readable signature there is nothing to tell the model."""
    with pytest.raises(ToolDefinitionError):
        python_tool(function)


def test_parameters_that_json_cannot_fill_are_refused() -> None:
    """Positional-only and variadic parameters, and types without a schema."""

    def many(*cities: str) -> None: ...

    def options(**options: str) -> None: ...

    def positional(city: str, /) -> None: ...

    def opened(file: memoryview | complex) -> None: ...

    def unresolved(city: "Nowhere") -> None: ...  # type: ignore[name-defined] # noqa: F821, UP037

    for function in (many, options, positional, opened, unresolved):
        with pytest.raises(ToolDefinitionError, match=function.__name__):
            python_tool(function)


def test_functions_and_definitions_are_mixed() -> None:
    """A definition is offered verbatim and has no function; a ready tool passes through."""
    definition = {"type": "function", "function": {"name": "ask", "parameters": {"type": "object"}, "strict": True}}
    tools, functions = offered([weather, definition, Tool("peek")])
    assert ["weather", "ask", "peek"] == [tool.name for tool in tools]
    assert ["weather"] == list(functions)
    assert definition == json.loads(tools[1].wire)
    assert '{"type":"object"}' == tools[1].parameters


@pytest.mark.parametrize(
    "tools", [[weather, weather], [{"type": "function"}], [{"function": {"name": 3}}], ["weather"]]
)
def test_list_of_tools_that_makes_no_sense_is_refused(tools: list[Any]) -> None:
    """Two of one name, a definition without a name, something that is neither."""
    with pytest.raises(ToolDefinitionError):
        offered(tools)


def test_coroutine_functions_are_awaited() -> None:
    """Result, wrong arguments and failure are told like those of plain functions."""
    import asyncio

    async def double(number: int) -> int:
        if number == 0:
            raise ZeroDivisionError("zero")
        return number * 2

    tool = python_tool(double)
    assert tool.is_async
    assert not python_tool(weather).is_async
    told = [asyncio.run(run_async_tool(tool, call("double", text)))[:2] for text in ('{"number":2}', "{}")]
    assert [("4", False), True] == [told[0], told[1][1]]
    assert ("ZeroDivisionError: zero", True) == asyncio.run(run_async_tool(tool, call("double", '{"number":0}')))[:2]


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        ({"name": "look", "description": "d", "input_schema": {"type": "object"}}, ("look", "d", '{"type":"object"}')),
        ({"type": "function", "name": "look", "parameters": {"a": 1}}, ("look", "", '{"a":1}')),
        ({"type": "web_search"}, ("web_search", "", "{}")),
        ({"googleSearch": {}}, ("googleSearch", "", "{}")),
    ],
    ids=["messages", "responses", "a provider's", "one key"],
)
def test_definitions_in_a_dialect_s_own_form(definition: dict[str, Any], expected: tuple[str, str, str]) -> None:
    """They go out as they are; what they say is understood where it can be."""
    (tool,), _ = offered([definition])
    assert expected == (tool.name, tool.description, tool.parameters)
    assert (definition, "") == (json.loads(tool.wire), tool.dialect)


def test_what_a_tool_cannot_do_is_told_in_its_own_words() -> None:
    """``ToolFailed`` comes without the name of a Python class, and with what to do."""

    def fail() -> None:
        raise ToolFailed("there is no such file", next_actions=("list shows what is there",))

    assert ("there is no such file\nlist shows what is there", True) == run(fail, "{}")


def test_a_tool_may_say_itself_what_the_model_is_told() -> None:
    """Text and whether it failed."""

    def answer() -> ToolOutput:
        return ToolOutput("no", True)

    assert ("no", True) == run(answer, "{}")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [('{"a":[],"b":1}', ('{"a":[],"b":1}', False)), ("", ("{}", False)), ("[]", (NO_OBJECT, True))],
)
def test_a_tool_whose_schema_is_given_gets_its_arguments_as_a_mapping(arguments: str, told: tuple[str, bool]) -> None:
    """As they came; whoever gave the schema checks them."""
    tool = PythonTool(Tool("given", "", "{}"), lambda given: given, None, "reads")
    definitions, runnable = offered([tool])
    assert ((tool.tool,), {"given": tool}) == (definitions, runnable)
    assert told == run_tool(runnable, call("given", arguments))[:2]


def test_a_function_may_go_by_another_name() -> None:
    """And say what it does to the world."""
    tool = python_tool(nothing, name="list", effect="reads")
    assert ("list", "reads") == (tool.tool.name, tool.effect)
