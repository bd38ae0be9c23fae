"""The plugin for the program ``llm``: ``llm -m thinkback/deepseek/deepseek-v4-pro`` asks in a session of our log.

Owns: which models llm is offered, which session a conversation of llm is, and the way of one response. llm alone loads
this module, by our entry point; of ours only what every command of llm needs is imported before a question is asked.
Promises: keys are ours, and nothing in llm's log is opaque; what llm tells of a history is compared with the session.
Must not: run tools, which llm does itself, or fail a command of llm that does not ask us anything.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import llm
from llm.parts import AttachmentPart, Message, StreamEvent, TextPart, ToolCallPart, ToolResultPart
from pydantic import Field

from thinkback.errors import NotFoundError, ThinkbackError

if TYPE_CHECKING:
    from thinkback.model.commits import Draft
    from thinkback.model.deltas import Delta
    from thinkback.session.reply import Reply
    from thinkback.session.requests import CallOptions
    from thinkback.session.requests import Prompt as Parts
    from thinkback.session.session import Session
    from thinkback.session.store import SessionStore

PREFIX = "thinkback"
_SESSION = "llm-{}"
_MEDIA = frozenset(
    {
        *(f"image/{kind}" for kind in ("png", "jpeg", "webp", "gif", "heic", "heif")),
        *(f"audio/{kind}" for kind in ("wav", "mpeg", "mp3", "flac", "ogg", "aac", "aiff")),
        *(f"video/{kind}" for kind in ("mp4", "mpeg", "webm", "quicktime")),
        *("application/pdf", "text/plain"),
    }
)
"""What an attachment may be; the endpoint's dialect refuses what it has no place for."""


# -- what llm is offered -----------------------------------------------------------------------------------------------


@llm.hookimpl  # type: ignore[untyped-decorator]
def register_models(register: Any) -> None:
    """Offer the models of the endpoints that the person has configured."""
    try:
        offered = list(_offered())
    except ThinkbackError as error:
        click.echo(f"thinkback offers no models: {error.for_people()}", err=True)
        return
    for endpoint, model in offered:
        register(Model(endpoint, model), AsyncModel(endpoint, model))


def _offered() -> Iterator[tuple[str, str]]:
    """Endpoint and model of each model; without an endpoint the default profile, without a model the option says it."""
    from thinkback.rules import packaged
    from thinkback.session import config
    from thinkback.session.config import keys

    yield "", ""
    book, shipped = config.rulebook(), {endpoint.id: endpoint for endpoint in packaged.endpoints()}
    for endpoint in sorted(book.endpoints(), key=lambda endpoint: endpoint.id):
        if endpoint != shipped.get(endpoint.id) or keys.places(endpoint.auth.env).keys() & set(endpoint.auth.env):
            yield endpoint.id, ""
            for model in book.served(endpoint.id):
                yield endpoint.id, model


class Options(llm.Options):  # type: ignore[misc]
    """What ``-o`` takes."""

    effort: str | None = Field(None, description="How much to reason: none, minimal, low, medium, high, xhigh, max")
    session: str | None = Field(None, description="The session of thinkback to go on with")
    model: str | None = Field(None, description="A model of the endpoint that is not listed")
    max_tokens: int | None = Field(None, description="The most tokens to answer with, reasoning included")
    temperature: float | None = Field(None, description="How freely to choose words")


class _Model:
    """What both kinds of model have in common."""

    can_stream = True
    supports_tools = True
    supports_schema = True
    attachment_types = _MEDIA
    Options = Options

    def __init__(self, endpoint: str, model: str) -> None:
        self.endpoint, self.model = endpoint, model
        self.model_id = "/".join(filter(None, (PREFIX, endpoint, model)))

    def __str__(self) -> str:
        return f"thinkback: {self.model_id}"


class Model(_Model, llm.Model):  # type: ignore[misc]
    """A model asked in a session of thinkback."""

    def execute(self, prompt: Any, stream: bool, response: Any, conversation: Any) -> Iterator[StreamEvent]:
        """The events of one response. Raises ``llm.ModelError``."""
        with _failing_as_llm(), _open() as store:
            asked = _asked(store, self, prompt, response, conversation, stream)
            events = _Events(asked.session.name)
            with asked.stream() as deltas:
                for delta in deltas:
                    yield from events.of(delta)
            yield from events.end(deltas.reply, response)


class AsyncModel(_Model, llm.AsyncModel):  # type: ignore[misc]
    """The same for asyncio; the log is read and written on threads."""

    async def execute(
        self, prompt: Any, stream: bool, response: Any, conversation: Any
    ) -> AsyncGenerator[StreamEvent, None]:
        """The events of one response. Raises ``llm.ModelError``."""
        with _failing_as_llm():
            store = await asyncio.to_thread(_open)
            try:
                asked = await asyncio.to_thread(_asked, store, self, prompt, response, conversation, stream)
                events = _Events(asked.session.name)
                async with asked.stream_async() as deltas:
                    async for delta in deltas:
                        for event in events.of(delta):
                            yield event
                for event in events.end(deltas.reply, response):
                    yield event
            finally:
                await asyncio.to_thread(store.close)


@contextmanager
def _failing_as_llm() -> Iterator[None]:
    try:
        yield
    except ThinkbackError as error:
        raise llm.ModelError(str(error)) from error


def _open() -> SessionStore:
    """The user's log, as the commands of thinkback have it."""
    import thinkback
    from thinkback.session import config

    path = str(config.data_file())
    config.make_place(path)
    tenant = os.environ.get("THINKBACK_TENANT") or "default"
    return thinkback.open(path, tenant=tenant, usage_log=config.usage_file())


# -- a question --------------------------------------------------------------------------------------------------------


class _Asked(NamedTuple):
    """What llm wants to know next: a message, or only what follows from results that are stored."""

    session: Session
    said: Parts | None
    options: CallOptions

    def stream(self) -> Any:
        from thinkback.session.requests import read_options
        from thinkback.session.stream import ReplyStream

        if self.said is not None:
            return self.session.stream(self.said, **self.options)
        return ReplyStream(self.session.conversation, None, read_options(self.options))

    def stream_async(self) -> Any:
        from thinkback.session.aio import AsyncReplyStream
        from thinkback.session.requests import read_options

        return AsyncReplyStream(self.session.conversation, self.said, read_options(self.options))


def _asked(store: SessionStore, model: _Model, prompt: Any, response: Any, conversation: Any, streams: bool) -> _Asked:
    """The session at the place where the question belongs, with the results of calls stored."""
    from thinkback.session import turns
    from thinkback.session.requests import read_options

    messages, wanted = prompt.messages, prompt.options
    behind = max((at for at, message in enumerate(messages) if message.role == "assistant"), default=-1) + 1
    history, new = messages[:behind], messages[behind:]
    said = [message for message in new if message.role == "user"]
    results = {part.tool_call_id: part.output for part in _parts(new, ToolResultPart)}
    if not said and not results:
        raise ThinkbackError("there is nothing to ask", next_actions=("give a prompt",))
    name = wanted.session or _marked(history) or _SESSION.format(conversation.id if conversation else response.id)
    session = store.session(name, endpoint=model.endpoint, model=wanted.model or model.model)
    _catch_up(session, [*history, *said[:-1]], goes_on=conversation is not None)
    system = "\n\n".join(part.text for part in _parts(messages, TextPart, "system"))
    options: CallOptions = {"stream": streams, "tools": _tools(prompt), "settings": _settings(wanted)}
    if system:
        options["system"] = system
    if prompt.schema:
        from thinkback.session.requests import JsonSchema

        options["response_format"] = JsonSchema(prompt.schema)
    if results:
        turns.answer(session.conversation, results, read_options(options))
    return _Asked(session, _content(said[-1]) if said else None, options)


def _parts(messages: Sequence[Message], kind: type, *roles: str) -> Iterator[Any]:
    return (
        part
        for message in messages
        if not roles or message.role in roles
        for part in message.parts
        if isinstance(part, kind)
    )


def _tools(prompt: Any) -> list[Mapping[str, Any]]:
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description or "", "parameters": tool.input_schema},
        }
        for tool in prompt.tools
    ]


def _settings(wanted: Any) -> dict[str, object]:
    said = {
        "reasoning.effort": wanted.effort,
        "params.max_tokens": wanted.max_tokens,
        "params.temperature": wanted.temperature,
    }
    return {key: value for key, value in said.items() if value is not None}


def _content(message: Message) -> Parts:
    """What a person says: texts, and what is attached."""
    from thinkback.model.blocks import Media

    pieces: list[str | Media] = []
    for part in message.parts:
        if isinstance(part, TextPart):
            pieces.append(part.text)
        elif isinstance(part, AttachmentPart):
            given = part.attachment
            where = {"url": given.url} if given.url else {"data": given.base64_content()}
            pieces.append(Media(given.resolve_type(), **where))
    return pieces[0] if len(pieces) == 1 and isinstance(pieces[0], str) else pieces


# -- the history that llm tells ----------------------------------------------------------------------------------------


def _mark(part: Any) -> Mapping[str, Any]:
    """What we noted on a part: its session and response. llm stores it and gives it back."""
    noted = (part.provider_metadata or {}).get(PREFIX)
    return noted if isinstance(noted, Mapping) else {}


def _marked(history: Sequence[Message]) -> str:
    """The session that the last of our answers is in; empty where there is none."""
    marks = (_mark(part) for message in reversed(history) for part in reversed(message.parts))
    return next((str(mark["session"]) for mark in marks if mark.get("session")), "")


def _catch_up(session: Session, history: Sequence[Message], *, goes_on: bool) -> None:
    """Put the session where ``history`` ends, with what of it is not there yet.

    ``goes_on``: a conversation of llm, which may have gone on in thinkback: what is there in between stays, but for a
    question that was never answered, of which llm knows nothing. A history that is given as such is meant as it is.
    """
    from thinkback.log.echo_digests import drafts_of, echoed_messages
    from thinkback.session import adopt
    from thinkback.session.ids import new_id

    conversation = session.conversation
    conversation.refresh()
    commits = conversation.history.commits
    drafts = _drafts(history, conversation.history.commits)
    ours, theirs = echoed_messages(drafts_of(commits)), echoed_messages(drafts)
    known, at = 0, 0
    for place, message in enumerate(ours):
        if known < len(theirs) and theirs[known].value == message.value:
            known, at = known + 1, place + 1
        elif not goes_on:
            break
    if known < len(theirs) and at != known:  # what differs begins where nothing lies between
        at = known = next((n for n, (one, two) in enumerate(zip(ours, theirs, strict=False)) if one.value != two.value))
    left = ours[at:]
    is_answered = any(message.speaker == "assistant" for message in left)
    if left and not (goes_on and known == len(theirs) and is_answered):
        session.branches.before(commits[left[0].at[0]].hash, _SESSION.format(new_id()[:8]))
    if known < len(theirs):
        conversation.append(adopt.new_drafts(conversation.history.commits, drafts))


def _drafts(history: Sequence[Message], commits: Sequence[Any]) -> list[Draft]:
    """The messages as commits would have them. An answer of ours is as we have it, where llm printed more than that."""
    from thinkback.model.blocks import Block, Origin, Text, ToolCall, ToolResult
    from thinkback.model.commits import Draft, Response
    from thinkback.session import requests
    from thinkback.session.ids import new_id
    from thinkback.wire.registry import CHAT

    said: dict[str, str] = {}
    for commit in commits:
        if isinstance(commit.value, Text):
            said[commit.response] = said.get(commit.response, "") + commit.value.text
    drafts: list[Draft] = []
    for message in history:
        if message.role == "user":
            drafts.append(Draft("user", requests.message(_content(message))))
        elif message.role == "tool":
            for part in _parts([message], ToolResultPart):
                drafts.append(Draft("tool_result", ToolResult(part.tool_call_id or "", part.output, part.name)))
        elif message.role == "assistant":
            text = "".join(part.text for part in _parts([message], TextPart))
            response = next((str(mark["response"]) for mark in map(_mark, message.parts) if mark.get("response")), "")
            ours = said.get(response, "")
            blocks: list[Block] = [Text(ours if ours and text.endswith(ours) else text)] if text else []
            for part in _parts([message], ToolCallPart):
                blocks.append(ToolCall(part.tool_call_id or "", part.name, json.dumps(part.arguments)))
            id = new_id()
            drafts.append(Draft("response", Response(Origin(CHAT, "", ""), blocks=len(blocks)), id))
            for index, block in enumerate(blocks):
                drafts.append(Draft("assistant" if isinstance(block, Text) else "tool_call", block, id, index))
    return drafts


# -- an answer ---------------------------------------------------------------------------------------------------------


class _Events:
    """The deltas of a turn as events of llm."""

    def __init__(self, session: str) -> None:
        self._session = session
        self._has_shown_reasoning = False

    def of(self, delta: Delta) -> Iterator[StreamEvent]:
        """Text and reasoning as they come; calls are told when they are whole."""
        from thinkback.model.deltas import ReasoningDelta, TextDelta

        if isinstance(delta, TextDelta):
            yield StreamEvent("text", delta.text, provider_metadata=self._noted(delta.response))
        elif isinstance(delta, ReasoningDelta) and delta.text:
            self._has_shown_reasoning = True
            yield StreamEvent("reasoning", delta.text)

    def end(self, reply: Reply, response: Any) -> Iterator[StreamEvent]:
        """Calls, and reasoning that nobody may read; ``response`` learns the model and the tokens."""
        last = reply.steps[-1]
        if not reply.text.strip() and not reply.tool_calls:
            raise llm.ModelError(f"no answer: {reply.ending or reply.reason or reply.outcome}")
        if not self._has_shown_reasoning and any(commit.kind == "reasoning" for commit in last.commits):
            yield StreamEvent("reasoning", "", redacted=True)
        for call in reply.tool_calls:
            noted = self._noted(last.commits[0].response)
            yield StreamEvent("tool_call_name", call.name, tool_call_id=call.id, provider_metadata=noted)
            yield StreamEvent("tool_call_args", call.arguments, tool_call_id=call.id)
            response.add_tool_call(llm.ToolCall(call.name, _arguments(call.arguments), call.id))
        origin, used = last.result.response.origin, reply.tokens
        response.set_resolved_model(origin.served_model or origin.requested_model)
        if used is not None:
            counts = {"reasoning_tokens": used.reasoning, "cached_tokens": used.cached}
            details = {name: count for name, count in counts.items() if count}
            response.set_usage(input=used.input, output=used.output, details=details or None)

    def _noted(self, response: str) -> dict[str, Any]:
        return {PREFIX: {"session": self._session, "response": response}}


def _arguments(source: str) -> dict[str, Any]:
    with suppress(ValueError):
        read = json.loads(source)
        if isinstance(read, dict):
            return read
    return {"_raw": source} if source.strip() else {}


# -- commands ----------------------------------------------------------------------------------------------------------


@llm.hookimpl  # type: ignore[untyped-decorator]
def register_commands(cli: click.Group) -> None:
    """``llm thinkback why``."""

    @cli.group(name=PREFIX)
    def commands() -> None:
        """What thinkback keeps of the conversations it was asked in."""

    @commands.command()
    @click.argument("session", required=False)
    @click.option("--cid", "--conversation", help="The conversation of llm with this ID.")
    def why(session: str | None, cid: str | None) -> None:
        """Explain which reasoning went back with the last request of SESSION, by default of llm's last conversation."""
        from thinkback.adapters.transport.telling import Why

        try:
            with _open() as store:
                name = session or (_SESSION.format(cid) if cid else _newest(store))
                store.find(name)
                plan = store.session(name).explain()
            click.echo(str(Why(True, session=name, model=plan.target.model, plan=plan)))
        except ThinkbackError as error:
            raise click.ClickException(error.for_people()) from error


def _newest(store: SessionStore) -> str:
    names = (info.name for info in store.sessions() if info.name.startswith(_SESSION.format("")))
    found = next(names, None)
    if found is None:
        raise NotFoundError("llm had no conversation in this log yet", next_actions=("name a session",))
    return found
