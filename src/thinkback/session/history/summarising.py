"""A model writes a summary: through a session of its own in memory, so that the history is not touched.

Promises: its answer has the shape that was asked for and holds what must survive, or it is asked once more with what is
wrong; then the log alone has to do, and a note says why.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from thinkback.errors import (
    CompactionRefused,
    ContextRefused,
    NotFoundError,
    ProviderError,
    ReplayRefused,
    SettingError,
    ThinkbackError,
    UnsupportedContent,
    Veto,
)
from thinkback.log import summary
from thinkback.log.compaction import AUTOMATIC, USEFUL, cut
from thinkback.log.digest import survivors, transcript
from thinkback.log.outline import Outline
from thinkback.model.commits import Compaction, Usage
from thinkback.model.deltas import Status
from thinkback.session.endpoint_config import EndpointConfig
from thinkback.session.history.compacting import CheckpointRequest, Compactor
from thinkback.session.planning import plan_of
from thinkback.session.profiles.files import SETTING
from thinkback.session.reply import Reply, total
from thinkback.session.requests import Options
from thinkback.turn import auto_compaction, pressure

if TYPE_CHECKING:
    from thinkback.session.configuration import Configuration
    from thinkback.session.conversation import Conversation
    from thinkback.session.session import Session
    from thinkback.session.store import SessionStore

# Of the writer's context, in characters; the rest is for what it says. The size assumed where it is not known.
_SHARE, _CHARACTERS_PER_TOKEN, _CONTEXT = 0.5, 4, 32_000
# A request that asks for a schema is refused so by hosts that know none.
_SCHEMA_STATUSES = frozenset({400, 404, 422})


class Written(NamedTuple):
    """What became of a summary: its text (empty: none that could be used), by whom, at what cost, what went wrong."""

    text: str
    model: str
    usage: Usage | None = None
    note: str = ""


class Step(NamedTuple):
    """What to ask next; without a prompt to go on with what was asked."""

    prompt: str
    options: dict[str, Any]


@contextmanager
def apart_from(store: SessionStore, place: EndpointConfig, name: str) -> Iterator[Session]:
    """A session in memory, with the settings and rules of ``store``, for requests to ``place``."""
    from thinkback.session.conversation import Conversation
    from thinkback.session.session import Session as Apart
    from thinkback.session.store import SessionStore
    from thinkback.stores import open_store

    # where it goes is said already: a profile has no say in it
    settings = {key: value for key, value in store.user_settings().items() if key != SETTING}
    with SessionStore(open_store(":memory:"), True, None, settings) as scratch:
        scratch.__dict__["rulebook"] = store.rulebook
        scratch.__dict__["usage_log"] = store.usage_log
        yield Apart(Conversation(scratch, scratch.log.create_session(name, name, 0), place))


class Summarising:
    """One summary in the making. ``run`` and ``run_async`` do the same; both need the history to stay as it is."""

    def __init__(self, conversation: Conversation, asked: CheckpointRequest, outline: Outline) -> None:
        found = cut(outline, asked.wish)
        configuration, book = conversation.current(), conversation.store.rulebook
        self._store = conversation.store
        self._place = _place(conversation, configuration, asked)
        target = self._place.target(book)
        self._place.authenticator(book)
        self._survivors = survivors(outline, found)
        size = int((target.info.context or _CONTEXT) * _CHARACTERS_PER_TOKEN * _SHARE)
        self._prompt = summary.request(
            transcript(outline, found, size, rationale=configuration.settings().compaction_rationale), self._survivors
        )
        self._is_strict = target.endpoint.strict or configuration.settings().strict
        self._model = f"{target.endpoint.id}/{target.model}"
        self._usages: list[Usage] = []
        self._asked_again = False
        self._wants_schema = True
        self._result: Written | None = None

    def run(self) -> Written:
        """Ask and wait."""
        with apart_from(self._store, self._place, "summary") as apart:
            step = self._step(self._prompt)
            while self._result is None:
                try:
                    reply = apart.chat(step.prompt, **step.options) if step.prompt else apart.generate(**step.options)
                except ThinkbackError as error:
                    step = self._failed(error)
                else:
                    step = self._take(reply)
        return self._result

    async def run_async(self) -> Written:
        """The same for asyncio."""
        with apart_from(self._store, self._place, "summary") as apart:
            step = self._step(self._prompt)
            while self._result is None:
                try:
                    calls = apart.aio
                    reply = await (
                        calls.chat(step.prompt, **step.options) if step.prompt else calls.generate(**step.options)
                    )
                except ThinkbackError as error:
                    step = self._failed(error)
                else:
                    step = self._take(reply)
        return self._result

    def _step(self, prompt: str) -> Step:
        settings: dict[str, object] = {"compaction.auto": False}
        if not self._is_strict:
            # Reasoning must not eat what is left of the output for the summary.
            settings["reasoning.effort"] = "low"
        options: dict[str, Any] = {"system": summary.SYSTEM, "settings": settings, "max_steps": 1}
        return Step(prompt, {**options, "response_format": summary.Summary} if self._wants_schema else options)

    def _take(self, reply: Reply) -> Step:
        if reply.usage is not None:
            self._usages.append(reply.usage)
        try:
            text = summary.read(reply.text, self._survivors)
        except CompactionRefused as error:
            if self._asked_again:
                return self._end("", f"the summary by {self._model} was refused twice: {error.message}")
            self._asked_again = True
            return self._step(summary.again(error.message))
        return self._end(text)

    def _failed(self, error: ThinkbackError) -> Step:
        """Once without a schema, where that may have been too much; else the log alone has to do."""
        refused = isinstance(error, ProviderError) and error.details.get("status") in _SCHEMA_STATUSES
        if self._wants_schema and (refused or isinstance(error, UnsupportedContent | SettingError)):
            self._wants_schema = False
            # What was refused before the network was not stored.
            return self._step("" if refused else self._prompt)
        return self._end("", f"{self._model} could not write the summary: {error.message}")

    def _end(self, text: str, note: str = "") -> Step:
        self._result = Written(text, self._model, total(self._usages), note)
        return Step("", {})


def before_turn(conversation: Conversation, options: Options) -> Iterator[Status]:
    """Where a model is to summarise by itself and it is time, let it, before the turn begins."""
    conversation.last_turn.settle()
    conversation.refresh()
    asked = _due(conversation, options)
    if asked is None:
        return
    yield Status("compacting", asked.reason)
    try:
        written = Summarising(conversation, asked, Compactor(conversation).outline()).run()
    except ThinkbackError as error:
        written = _unwritten(conversation, error)
    yield from _stored(conversation, asked, written)


async def before_turn_async(conversation: Conversation, options: Options) -> list[Status]:
    """The same for asyncio, told afterwards. An earlier turn must be over, and the history as it is in the log."""
    asked = _due(conversation, options)
    if asked is None:
        return []
    try:
        written = await Summarising(conversation, asked, Compactor(conversation).outline()).run_async()
    except ThinkbackError as error:
        written = _unwritten(conversation, error)
    import asyncio

    loop, executor = asyncio.get_running_loop(), conversation.store.executor
    stored = await loop.run_in_executor(executor, _stored, conversation, asked, written)
    return [Status("compacting", asked.reason), *stored]


def _due(conversation: Conversation, options: Options) -> CheckpointRequest | None:
    """What a model is to summarise now; nothing where the turn itself can say that nothing is to be done."""
    configuration = conversation.configure()
    settings = configuration.settings(options.settings)
    try:
        plan = plan_of(conversation, configuration, options)
    except (ReplayRefused, ContextRefused):  # the turn itself says so
        return None
    if pressure.level(plan.counts, settings) != "summarise":
        return None
    wish, found = auto_compaction.choice(conversation.history, plan) or (None, None)
    if wish is None or found is None or found.after >= USEFUL * found.before:
        return None
    reason = f"{AUTOMATIC}: {pressure.share(plan.counts)}"
    return CheckpointRequest(msgspec.structs.replace(wish, strategy="model"), "", "", reason)


def _unwritten(conversation: Conversation, error: ThinkbackError) -> Written:
    configuration = conversation.current()
    name = configuration.settings().compaction_model or configuration.target.model
    return Written("", name, note=f"{name} could not be asked for a summary: {error.message}")


def _stored(conversation: Conversation, asked: CheckpointRequest, written: Written) -> list[Status]:
    compactor = Compactor(conversation)
    try:
        plan = compactor.planned(asked, written)
        commit = compactor.store(plan)
    except (CompactionRefused, Veto) as error:
        return [Status("compacting", f"no checkpoint was made: {error.message}")]
    assert isinstance(commit.value, Compaction)
    lost = auto_compaction.lost_line(plan.unbound, conversation.configure().target.model)
    told = [Status("dropping_thoughts", lost)] if lost else []
    return [*told, Status("compacting", pressure.describe(commit.value))]


def _place(conversation: Conversation, configuration: Configuration, asked: CheckpointRequest) -> EndpointConfig:
    """Where the summary is written: as asked for, as ``compaction.model`` says, or where the session goes or went."""
    place, book = configuration.place, configuration.rules
    last = Compactor(conversation).last_request()
    if not place.is_complete and last is not None:
        went = last.target
        place = place.changed(book, endpoint=went["endpoint"], base_url=went["base_url"], model=went["model"])
    if asked.endpoint or asked.model:
        return place.changed(book, endpoint=asked.endpoint or None, model=asked.model or None)
    name = configuration.settings().compaction_model
    if name is None:
        return place
    endpoint, _, model = name.partition("/")
    try:
        book.endpoint(endpoint)
    except NotFoundError:
        return place.changed(book, model=name)
    return place.changed(book, endpoint=endpoint, model=model) if model else place.changed(book, model=name)
