"""From what a caller says to what a request needs: options, messages, parameters, results; and back from its record."""

from __future__ import annotations

import base64
import difflib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypedDict

import msgspec

from thinkback.compile import translate
from thinkback.drive.approval import Approve
from thinkback.drive.http import Timeouts
from thinkback.drive.tools import PythonTool, inline, offered, result_text
from thinkback.errors import (
    NEXT,
    CorruptLogError,
    ErasedError,
    NotFoundError,
    SettingError,
    ThinkbackError,
    UnsupportedContent,
    WireError,
)
from thinkback.model import canonical
from thinkback.model.blocks import Media, Text, ToolResult, Unknown
from thinkback.model.commits import RECIPE, Commit, Draft, Erased, Message, Request, Tool, surviving
from thinkback.model.plan import Control
from thinkback.model.target import Basis, Settings, Target, merge
from thinkback.session.endpoint_config import EndpointConfig as EndpointConfig
from thinkback.session.endpoint_config import Rulebook as Rulebook
from thinkback.settings import restore
from thinkback.turn import orphans
from thinkback.turn.orphans import OpenCall
from thinkback.turn.own_fields import taking_all
from thinkback.turn.plan import AS_WRITTEN, REMARKS, History, Plan, remarked
from thinkback.turn.reports import report_of
from thinkback.turn.translation import parameters
from thinkback.wire.registry import CHAT as CHAT
from thinkback.wire.registry import dialect
from thinkback.wire.result import WantedOptions

Part: TypeAlias = Text | Media | Unknown
Prompt: TypeAlias = str | Sequence[str | Media | Mapping[str, Any]]
# A user message in the dialects, and where its parts stand; those of a text that a model is told.
_ENVELOPES = (({"role": "user"}, "content"), ({"role": "user"}, "parts"), ({"type": "user_input"}, "content"))
_SAID = ("type", "text")

# What an option may be, and in words.
_KINDS: dict[str, tuple[Any, str]] = {
    "system": (str, "text"),
    "params": (Mapping, "a mapping of request fields"),
    "settings": (Mapping, "a mapping of settings"),
    "tools": (Sequence, "a list of functions and definitions"),
    "reasoning": (bool, "true or false"),
    "stream": (bool, "true or false"),
    "timeouts": (Timeouts, "thinkback.Timeouts"),
    "approve": (Callable, "a function of a PermissionRequest"),
    "max_steps": (int, "a whole number from 1"),
    "max_retries": (int, "a whole number from 0"),
}
_LEAST = {"max_steps": 1, "max_retries": 0}
_SAID_BY = {"model": "model=", "tools": "tools="}
ToolLike: TypeAlias = Callable[..., Any] | Mapping[str, Any] | Tool | PythonTool


class CallOptions(TypedDict, total=False):
    """What every call takes; ``Session.chat`` says what each means."""

    tools: Sequence[ToolLike] | None
    system: str | Sequence[str | Mapping[str, Any]] | None
    params: Mapping[str, Any] | None
    response_format: Any
    settings: Mapping[str, object] | None
    reasoning: bool
    max_steps: int
    max_retries: int
    stream: bool
    timeouts: Timeouts | None
    approve: Approve | None


class JsonSchema(msgspec.Struct, frozen=True):
    """An answer's form, said as a JSON schema with a name: a ``response_format`` for every dialect."""

    schema: Mapping[str, Any]
    name: str = "answer"


class Options(msgspec.Struct, frozen=True):
    """The options of a call, read once. ``functions`` are those among ``tools`` that can be run."""

    tools: tuple[Tool, ...] | None = None
    functions: dict[str, PythonTool] = {}
    system: str | None = None
    params: Mapping[str, Any] = {}
    response_format: Any = None
    settings: Mapping[str, object] = {}
    reasoning: bool = True
    max_steps: int | None = None
    max_retries: int = 3
    stream: bool = True
    timeouts: Timeouts | None = None
    approve: Approve | None = None


def read_options(given: Mapping[str, Any]) -> Options:
    """``given`` as ``Options``, checked before anything is stored.

    Raises ``TypeError`` for one that is misspelt or of a wrong type, ``ToolDefinitionError`` for a bad tool.
    """
    known = CallOptions.__annotations__
    for name in given:
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {close[0]}?" if close else f"options are {', '.join(known)}"
            raise TypeError(f"unknown option {name!r}: {hint}")
    said = {name: value for name, value in given.items() if value is not None}
    if isinstance(said.get("system"), list | tuple):
        said["system"] = _system_text(said["system"])
    for name, value in said.items():
        kind, wanted = _KINDS.get(name, (object, ""))
        if not isinstance(value, kind) or (kind is int and (isinstance(value, bool) or value < _LEAST[name])):
            raise TypeError(f"{name} must be {wanted}, not {value!r:.60}")
    if "tools" in said:
        said["tools"], said["functions"] = offered(said["tools"])
    return Options(**said)


def _system_text(parts: Sequence[object]) -> str:
    """The text of a system prompt that was given as content parts: a paragraph each. Raises ``UnsupportedContent``."""
    texts: list[str] = []
    for at, part in enumerate(parts):
        text = part.get("text") if isinstance(part, Mapping) else part
        if not isinstance(text, str):
            raise UnsupportedContent(
                f"part {at} of system= has no text",
                next_actions=("give a text, or a list of texts and text parts; pictures go into the message",),
            )
        texts.append(text)
    return "\n\n".join(texts)


def has_parts(prompt: Prompt | object) -> bool:
    """Whether a prompt has content parts, which are read for the dialect that the next request is written in."""
    return isinstance(prompt, list | tuple) and any(isinstance(piece, Mapping) for piece in prompt)


def message(prompt: Prompt | object, speech: str = CHAT) -> Message:
    """A user message from text, or from parts: texts, ``Media``, and content parts.

    A part in the form of ``speech``, the target's dialect, goes as it is; one in the form of chat completions is
    translated. Raises ``TypeError`` for anything else, ``UnsupportedContent`` for a message that says nothing.
    """
    if isinstance(prompt, str):
        if not prompt.strip():
            raise UnsupportedContent("the message is empty", next_actions=("give it a text",))
        return Message(_whole(prompt))
    if isinstance(prompt, bytes) or not isinstance(prompt, list | tuple):
        raise TypeError(f"a message is text or a list of parts, not {type(prompt).__name__}")
    for piece in prompt:
        if not isinstance(piece, str | Media | Mapping):
            raise TypeError(f"a part of a message is text, Media or a content part, not {type(piece).__name__}")
        if isinstance(piece, Mapping) and "role" in piece:
            raise TypeError("a part of a message has no role: session.wire.adopt takes a history of messages over")
    if not prompt:
        raise UnsupportedContent("the message is empty", next_actions=("give it a text",))
    pieces = [_part(piece, speech) for piece in prompt]
    written = {said for part, said in pieces if part.wire}
    if len(written) > 1:
        # One message is of one dialect: what chat completions said of the others is translated here.
        pieces = [
            (part, said)
            if said == speech
            else (translate.message(Message("", (part,), dialect=said), speech).parts[0], "")
            for part, said in pieces
        ]
        written = {speech}
    parts = tuple(part for part, _ in pieces)
    text = "".join(part.text for part in parts if isinstance(part, Text))
    return Message(text, parts, dialect=written.pop() if written else "")


def _part(piece: str | Media | Mapping[str, Any], speech: str) -> tuple[Part, str]:
    """A part, and the dialect it is in."""
    if isinstance(piece, str):
        return Text(_whole(piece)), ""
    if isinstance(piece, Media):
        _check_media(piece)
        return piece, ""
    plain = _read_part(piece, CHAT)
    native = _read_part(piece, speech)
    if native is not None and (isinstance(plain, Unknown) or not _is_plain(piece, native, speech)):
        return native, speech
    return plain or Unknown(canonical.source(dict(piece))), CHAT


def _is_plain(piece: Mapping[str, Any], native: Part, speech: str) -> bool:
    """Whether a part that chat completions know is none of ``speech`` in spite of what its reader makes of it."""
    if isinstance(native, Unknown):
        return True
    said = {name: value for name, value in piece.items() if name in _SAID}
    bare = _read_part(said, speech) if isinstance(native, Text) and native.wire else None
    return bare is not None and bare.wire != ""


def _read_part(piece: Mapping[str, Any], speech: str) -> Part | None:
    """``piece`` as a reader of ``speech`` has it; ``None`` where it is no part of a user message there."""
    for rest, name in _ENVELOPES:
        try:
            drafts = dialect(speech).read_messages([{**rest, name: [piece]}], str)
        except WireError:
            continue
        value = drafts[0].value if len(drafts) == 1 else None
        if isinstance(value, Message) and (len(value.parts) == 1 or value.text):
            return value.parts[0] if value.parts else Text(value.text)
    return None


def _check_media(media: Media) -> None:
    """Refuse what no dialect could send."""
    if not (media.data or media.url or media.wire):
        raise UnsupportedContent(f"{media.media_type} without content", next_actions=("give data= or url=",))
    try:
        base64.b64decode(media.data, validate=True)
    except ValueError:
        raise UnsupportedContent(
            f"the data of {media.media_type} is not base64", next_actions=("encode it with base64.b64encode",)
        ) from None


def _whole(text: str) -> str:
    """``text``, if it is Unicode; half a character would be refused by every provider, and with it the session."""
    text = canonical.whole(text)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UnsupportedContent(
            f"the message holds half a character (a lone surrogate) at {error.start}",
            next_actions=("take it out, or decode the text again",),
        ) from None
    return text


def check_message(said: Message | None, target: Target) -> None:
    """Raise ``UnsupportedContent`` where the endpoint's dialect has no place for a part of the message."""
    if said is not None and said.parts:
        spoken = target.endpoint.dialect
        dialect(spoken).writer.message("user", translate.message(said, spoken))


def stamped(tools: tuple[Tool, ...] | None, spoken: str) -> tuple[Tool, ...] | None:
    """Definitions in a dialect's own form belong to the dialect they were first given to."""
    if tools is None or all(tool.dialect or not tool.wire for tool in tools):
        return tools
    return tuple(
        tool if tool.dialect or not tool.wire else msgspec.structs.replace(tool, dialect=spoken) for tool in tools
    )


# Request fields that every dialect has a name of its own for.
_COMMON = ("temperature", "top_p", "top_k", "max_tokens", "stop", "seed", "presence_penalty", "frequency_penalty")


def native_params(target: Target, options: Options, settings: Settings) -> dict[str, Any]:
    """Native request fields: streaming, response format, those of the settings, then whatever the caller gave.

    Raises ``UnsupportedContent`` where the dialect cannot be asked for a schema, ``SettingError`` for a field that is
    said otherwise or that JSON cannot hold.
    """
    stored, _ = stored_params(target, settings)
    _check_params({**stored, **options.params}, target)
    schema, name = _schema(options.response_format)
    endpoint = target.endpoint
    wanted = WantedOptions(options.stream and not endpoint.stream_path, endpoint.stream_usage, schema, name)
    params = dialect(endpoint.dialect).options(wanted)
    if isinstance(options.response_format, Mapping):
        params["response_format"] = dict(options.response_format)
    return merge(merge(params, stored), dict(options.params))


def stored_params(target: Target, settings: Settings) -> tuple[dict[str, Any], tuple[Control, ...]]:
    """The request fields of the settings (``params.*``) for ``target``, and a control for each that does not fit.

    Common names are said in the dialect's own words, so that an app or a profile holds at any endpoint.
    """
    if not settings.params:
        return {}, ()
    said: dict[str, Any] = json.loads(settings.params)
    common = {name: said.pop(name) for name in _COMMON if name in said}
    if isinstance(common.get("stop"), str):
        common["stop"] = [common["stop"]]
    written, left = parameters.write(target, parameters.Wishes(common))
    return merge(written, said), tuple(map(_unfit, left))


def _unfit(told: str) -> Control:
    """The control for a sentence of the translation: ``top_k: openai-chat has no name for it``."""
    what, _, reason = told.partition(": ")
    name, _, value = what.partition(" ")
    return Control(f"params.{name}", value or "set", "represented" if value else "unrepresentable", reason)


def _check_params(params: Mapping[str, Any], target: Target) -> None:
    """Refuse what the request has once already, and what cannot be written."""
    array = dialect(target.endpoint.dialect).writer.start.decode().strip('{["').partition('"')[0]
    for key, value in params.items():
        said = _SAID_BY.get(key) or ("the conversation itself" if key == array else "")
        if said:
            raise SettingError(
                f"params cannot set {key}: that is said by {said}", details={"key": key}, next_actions=(f"use {said}",)
            )
        try:
            canonical.encode({key: value})
        except (TypeError, ValueError) as error:
            raise SettingError(
                f"params: {key!r} cannot be written as JSON: {error}", details={"key": str(key)}
            ) from None


def _schema(wanted: Any) -> tuple[Mapping[str, Any] | None, str]:
    """The JSON schema of a type, and its name; a mapping is the native field as it is."""
    if wanted is None or isinstance(wanted, Mapping):
        return None, ""
    if isinstance(wanted, JsonSchema):
        return wanted.schema, wanted.name
    try:
        return inline(msgspec.json.schema(wanted)), getattr(wanted, "__name__", "answer")
    except TypeError as error:
        raise SettingError(
            f"response_format: {wanted!r} has no JSON schema: {error}",
            details={"key": "response_format"},
            next_actions=("give a msgspec.Struct, a dataclass or a TypedDict, or the field itself as a mapping",),
        ) from None


def result_drafts(results: Mapping[str, Any], waiting: Sequence[OpenCall]) -> list[Draft]:
    """Results a caller gives for calls that wait. Raises ``NotFoundError`` for an id that none of them has."""
    calls = {open_call.call.id: open_call for open_call in waiting}
    missing = [id for id in results if id not in calls]
    if missing:
        raise NotFoundError(
            f"no open call has the id {missing[0]!r}",
            details={"call": missing[0]},
            next_actions=(f"open calls: {', '.join(calls) or 'none'}",),
        )
    return [
        Draft("tool_result", ToolResult(id, result_text(value), calls[id].call.name), calls[id].response)
        for id, value in results.items()
    ]


def check_answered(waiting: Sequence[OpenCall], results: Mapping[str, str], runnable: Mapping[str, PythonTool]) -> None:
    """Refuse to go on while a call has neither a result nor a function that gives one."""
    for open_call in waiting:
        call = open_call.call
        if call.id not in results and call.name not in runnable:
            raise ThinkbackError(
                f"the call {call.id!r} of {call.name} has no result yet",
                details={"call": call.id, "tool": call.name},
                next_actions=(
                    "give it in tool_results=",
                    "or give the function in tools=",
                    "or ask something new: open calls are recorded as interrupted then",
                ),
            )


def open_calls(commits: Sequence[Commit]) -> list[OpenCall]:
    """The calls that wait for a result."""
    return orphans.open_calls(commits)


def rebuild(commits: Sequence[Commit], request: str = "") -> Plan:
    """The plan of a request (the hash of its record, or of a commit of its response), folded again from its record.

    Without a name it is the last one. The history may end with the request: what came later plays no part.

    Raises ``NotFoundError`` where that cannot be done, because there was none, it went as its client wrote it, or it
    carried reasoning that was not kept, ``ErasedError`` where commits were erased since, and ``CorruptLogError`` when
    the bytes are not those whose digest was stored.
    """
    at = _request_at(commits, request)
    record = surviving(commits[at].value)
    erased = [commit.hash for commit in commits[: at + 1] if isinstance(commit.value, Erased)]
    if not isinstance(record, Request) or commits[at].hash in erased:
        raise _erased(commits[at].hash, erased)
    if as_written := record.target.get(AS_WRITTEN):
        raise NotFoundError(
            f"the request cannot be built again from the log: {as_written}",
            details={"request": commits[at].hash},
            next_actions=(NEXT,),
        )
    try:
        # earlier versions took fields for one provider out behind the digest
        plans = (plan_of(record, commits, takes_all=at == 1) for at in range(2 if record.recipe == 1 else 1))
        plan = next((plan for plan in plans if plan.record().sent_digest == record.sent_digest), None)
    except ThinkbackError as error:
        if not erased:
            raise
        raise _erased(commits[at].hash, erased) from error
    if plan is not None:
        response = commits[at].response
        plan.answered(report_of(response, commits), commits, response)
        return plan
    if erased:
        raise _erased(commits[at].hash, erased)
    if "held" in record.target:
        raise NotFoundError(
            "the request carried reasoning that was not kept, so it cannot be built again",
            details={"request": commits[at].hash},
            next_actions=("Reply.decisions has its decisions while the program runs",),
        )
    raise CorruptLogError(
        "the rebuilt request differs from the one that was sent",
        details={"request": commits[at].hash},
        next_actions=("run `thinkback fsck`; if it is clean, the program that sent it built it differently",),
    )


def _erased(request: str, commits: Sequence[str]) -> ErasedError:
    return ErasedError(
        "the request cannot be built again: commits it was built from were erased since",
        details={"request": request, "commits": list(commits)},
        next_actions=("its record still says where it went and with which settings",),
    )


def _request_at(commits: Sequence[Commit], name: str) -> int:
    """Where the record stands of the request that ``name`` is, or that brought it; of the last one without a name."""
    named = next((commit for commit in commits if commit.hash == name), None)
    for at in range(len(commits) - 1, -1, -1):
        commit = commits[at]
        if commit.kind == "request" and (named is None or commit is named or commit.response == named.response != ""):
            return at
    if named is None:
        raise NotFoundError(
            "the log has no request of this session: none was sent, or the program ended while it was under way",
            next_actions=(NEXT,),
        )
    raise NotFoundError(
        f"commit {name[:12]} is not a request, and no request of this session produced it",
        details={"commit": name},
        next_actions=("`thinkback log` lists the requests",),
    )


def plan_of(record: Request, commits: Sequence[Commit], *, takes_all: bool = False) -> Plan:
    """The plan that ``record`` describes, from the commits up to its head.

    ``takes_all``: to a place that takes every field that programs add for one provider.
    """
    head = next((at for at, commit in enumerate(commits) if commit.hash == record.head), -1)
    plan = plan_like(record, commits, History(commits[: head + 1]), recipe=record.recipe, takes_all=takes_all)
    remarks = {name: said for name, said in record.target.items() if name in REMARKS}
    return msgspec.structs.replace(remarked(plan, remarks), settings=dict(record.settings))


def plan_like(
    record: Request, commits: Sequence[Commit], history: History, *, recipe: int = RECIPE, takes_all: bool = False
) -> Plan:
    """A plan of ``history`` to where ``record`` went, with its settings and parameters; ``commits`` have its data."""
    place, basis = record.target, _basis(record, commits)
    target = Target(
        endpoint=taking_all(basis.endpoint) if takes_all else basis.endpoint,
        base_url=place["base_url"],
        model=place["model"],
        rule=basis.rule,
        info=basis.info,
        account=place["account"],
        account_known=place["account_known"] == "true",
        guessed=place["guessed"] == "true",
        on=place["on"],
    )
    params = canonical.decode(record.params)
    return history.plan(target, restore(record.settings), None, params, recipe=recipe)


def _basis(record: Request, commits: Sequence[Commit]) -> Basis:
    """The data ``record`` was built by: its own, or that of the earlier request which has it."""
    requests = (surviving(commit.value) for commit in commits if commit.kind == "request")
    bases = (r.basis for r in requests if isinstance(r, Request) and r.basis_digest == record.basis_digest)
    found = next(filter(None, bases), "")
    if not found:
        raise CorruptLogError(
            "the data that the request was built by is not in the log",
            details={"basis": record.basis_digest},
            next_actions=("run `thinkback fsck`",),
        )
    basis: Basis = canonical.decode(found, Basis)
    return basis
