"""Functions as tools: schema from the signature or given, arguments checked, results as text."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from thinkback.drive.hooks import NO_HOOKS, Hooks
from thinkback.drive.stopping import NEVER, STOP, Stop
from thinkback.errors import ToolDefinitionError, ToolFailed, Veto
from thinkback.model import canonical
from thinkback.model.blocks import ToolCall
from thinkback.model.commits import Draft, Tool
from thinkback.turn.permissions import Effect
from thinkback.wire.registry import CHAT


class ToolOutput(NamedTuple):
    """What the model is told of one call; a function may return one. ``notes`` are stored with the result."""

    content: str
    is_error: bool = False
    notes: tuple[Draft, ...] = ()


class PythonTool(msgspec.Struct, frozen=True):
    """A function offered as a tool. ``arguments`` is the struct its arguments are checked against; ``None`` where the
    schema was given: the function gets the arguments as one mapping then, and checks them itself.

    ``effect`` is what permissions go by; a function of the caller may do anything. ``check`` gets the arguments by name
    before a person is asked about a call, and returns why it cannot run, or an empty text.
    """

    tool: Tool
    function: Callable[..., Any]
    arguments: type[msgspec.Struct] | None
    effect: Effect = "runs"
    check: Callable[[Mapping[str, Any]], str] | None = None

    @property
    def is_async(self) -> bool:
        """Whether it must be awaited."""
        return inspect.iscoroutinefunction(self.function)


def python_tool(function: Callable[..., Any], *, name: str = "", effect: Effect = "runs") -> PythonTool:
    """``function`` as a tool: its name, the first paragraph of its docstring, its parameters as JSON schema.

    Raises ``ToolDefinitionError`` for a signature that JSON arguments cannot fill.
    """
    name = name or getattr(function, "__name__", "")
    if not name.isidentifier():
        raise ToolDefinitionError(
            f"a tool needs a name: {function!r} has none", next_actions=("define it with def, not lambda",)
        )
    try:
        fields = _fields(function, name)
        arguments = msgspec.defstruct(f"{name}_arguments", fields, forbid_unknown_fields=True)
        schema = msgspec.json.schema(arguments)
    except (TypeError, ValueError) as error:
        raise ToolDefinitionError(
            f"a parameter type of tool {name!r} has no JSON schema: {error}",
            next_actions=("use str, int, float, bool, list, dict, Literal, Enum or a msgspec.Struct",),
        ) from None
    description = (inspect.getdoc(function) or "").partition("\n\n")[0].replace("\n", " ")
    parameters = canonical.encode(inline(schema)).decode()
    return PythonTool(Tool(name, description, parameters), function, arguments, effect)


def offered(tools: Iterable[Any]) -> tuple[tuple[Tool, ...], dict[str, PythonTool]]:
    """(definitions, runnable ones by name) of functions, tools and definitions, mixed.

    A definition is in the form of chat completions, or in that of the endpoint's own dialect, as tools that a provider
    runs itself are.
    """
    definitions: list[Tool] = []
    runnable: dict[str, PythonTool] = {}
    for item in tools:
        if isinstance(item, Tool):
            definitions.append(item)
        elif isinstance(item, Mapping):
            definitions.append(_definition(item))
        elif callable(item) or isinstance(item, PythonTool):
            tool = item if isinstance(item, PythonTool) else python_tool(item)
            definitions.append(tool.tool)
            runnable[tool.tool.name] = tool
        else:
            hint = "give a function or a definition; thinkback.toolbox opens those that come by name"
            raise ToolDefinitionError(f"not a tool: {item!r}", next_actions=(hint,))
    names = [tool.name for tool in definitions]
    for name in names:
        if names.count(name) > 1:
            raise ToolDefinitionError(f"two tools are named {name!r}", next_actions=("rename one",))
    return tuple(definitions), runnable


def bind(tool: PythonTool | None, call: ToolCall) -> dict[str, Any] | str:
    """The arguments of ``call`` by name, or the text that tells the model what is wrong with it."""
    if tool is None:
        return f"There is no tool named {call.name!r}."
    try:
        raw: Any = canonical.decode(call.arguments or "{}")
    except msgspec.DecodeError as error:
        return f"The arguments are not valid JSON: {error}"
    if tool.arguments is None:
        return raw if isinstance(raw, dict) else "The arguments do not fit the tool: they must be an object"
    try:
        checked = canonical.convert(raw, tool.arguments, strict=False)
    except msgspec.ValidationError as error:
        return f"The arguments do not fit the tool: {error}"
    return {field: getattr(checked, field) for field in tool.arguments.__struct_fields__}


def fault_of(tool: PythonTool, call: ToolCall) -> str:
    """Why ``call`` cannot run, as the model is told; empty where nothing is known to be wrong with it."""
    arguments = bind(tool, call)
    if isinstance(arguments, str):
        return arguments
    return tool.check(arguments) if tool.check is not None else ""


def run_tool(
    tools: Mapping[str, PythonTool], call: ToolCall, hooks: Hooks = NO_HOOKS, stop: Stop = NEVER
) -> ToolOutput:
    """Run one call. A tool that raises is a result, not a crash; one that exits ends itself, not the program.

    ``stop`` is the end of the turn, for tools that can be ended.
    """
    STOP.set(stop)
    output = _refused(hooks, call) or _run(tools, call)
    hooks.run("post_tool", (call, output.content, output.is_error))
    return output


async def run_async_tool(tool: PythonTool, call: ToolCall, hooks: Hooks = NO_HOOKS) -> ToolOutput:
    """The same for a coroutine function."""
    output = _refused(hooks, call) or await _run_async(tool, call)
    hooks.run("post_tool", (call, output.content, output.is_error))
    return output


def _refused(hooks: Hooks, call: ToolCall) -> ToolOutput | None:
    """What the model is told where a hook does not let the call run."""
    try:
        hooks.run("pre_tool", call)
    except Veto as veto:
        return ToolOutput(f"The call was not run: {veto.message}", True)
    return None


def _run(tools: Mapping[str, PythonTool], call: ToolCall) -> ToolOutput:
    tool = tools.get(call.name)
    arguments = bind(tool, call)
    if tool is None or isinstance(arguments, str):
        return ToolOutput(str(arguments), True)
    try:
        return _output(_invoke(tool, arguments))
    except (Exception, SystemExit) as error:  # foreign code: whatever it raises is told to the model
        return ToolOutput(failure_text(error), True)


async def _run_async(tool: PythonTool, call: ToolCall) -> ToolOutput:
    arguments = bind(tool, call)
    if isinstance(arguments, str):
        return ToolOutput(arguments, True)
    try:
        return _output(await _invoke(tool, arguments))
    except (Exception, SystemExit) as error:  # foreign code: whatever it raises is told to the model
        return ToolOutput(failure_text(error), True)


def _invoke(tool: PythonTool, arguments: dict[str, Any]) -> Any:
    return tool.function(arguments) if tool.arguments is None else tool.function(**arguments)


def _output(value: Any) -> ToolOutput:
    return value if isinstance(value, ToolOutput) else ToolOutput(result_text(value))


def result_text(value: Any) -> str:
    """What the model gets of a tool's return value: text as it is, everything else as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    try:
        return canonical.encode(value).decode()
    except (TypeError, ValueError):
        return str(value)


def failure_text(error: BaseException) -> str:
    """What the model gets of a tool that raised."""
    if isinstance(error, ToolFailed):
        return "\n".join((error.message, *error.next_actions))
    return f"{type(error).__name__}: {error}"


def _fields(function: Callable[..., Any], name: str) -> list[Any]:
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except NameError as error:
        raise ToolDefinitionError(f"a type of tool {name!r} is not defined: {error}") from None
    fields: list[Any] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise ToolDefinitionError(
                f"tool {name!r} has a parameter that JSON cannot fill: {parameter}",
                next_actions=("use named parameters only",),
            )
        hint = hints.get(parameter.name, Any)
        if parameter.default is inspect.Parameter.empty:
            fields.append((parameter.name, hint))
        else:
            fields.append((parameter.name, hint, _default(parameter.default)))
    # Required fields come first in a struct; keyword order means nothing in JSON.
    return sorted(fields, key=len)


def _default(value: Any) -> Any:
    if isinstance(value, (list, dict, set)):
        return msgspec.field(default_factory=lambda: type(value)(value))
    return value


def inline(schema: dict[str, Any]) -> dict[str, Any]:
    """``schema`` with its top reference resolved; nested ones stay under ``$defs``."""
    definitions = dict(schema.get("$defs", {}))
    top = schema.get("$ref", "").rpartition("/")[2]
    if not top:
        return schema
    body = dict(definitions.pop(top))
    body.pop("title", None)
    body.setdefault("properties", {})
    return {**body, "$defs": definitions} if definitions else body


def _definition(item: Mapping[str, Any]) -> Tool:
    function = item.get("function")
    wire = canonical.encode(dict(item)).decode()
    if isinstance(function, Mapping) and isinstance(function.get("name"), str):
        parameters = canonical.encode(function.get("parameters") or {}).decode()
        return Tool(function["name"], str(function.get("description") or ""), parameters, wire, CHAT)
    kind = item.get("type")
    # What a provider runs itself has a type in place of a name, or is one key with its options.
    name = item.get("name") or (kind if kind != "function" else None) or (next(iter(item)) if len(item) == 1 else None)
    if function is not None or name == "type" or not isinstance(name, str):
        raise ToolDefinitionError(
            "a tool definition needs function.name", next_actions=('{"type": "function", "function": {"name": ...}}',)
        )
    schema = item.get("input_schema") or item.get("parameters")
    parameters = canonical.encode(schema).decode() if isinstance(schema, Mapping) else "{}"
    return Tool(name, str(item.get("description") or ""), parameters, wire)
