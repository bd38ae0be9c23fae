"""A model writes a summary: through a session of its own in memory, so that the history is not touched.

Promises: its answer has the shape that was asked for and holds what must survive, or it is asked once more with what is
wrong; then the log alone has to do, and a note says why.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from thinkback.errors import (
    CompactionRefused,
    ContextRefused,
    NotFoundError,
    ReplayRefused,
    ThinkbackError,
    Veto,
)
from thinkback.log import summary
from thinkback.log.compaction import AUTOMATIC, USEFUL, cut
from thinkback.log.digest import survivors, transcript
from thinkback.log.outline import Outline
from thinkback.model.commits import Compaction, Usage
from thinkback.model.deltas import Status
from thinkback.model.target import Settings
from thinkback.session.endpoint_config import EndpointConfig
from thinkback.session.history.asking import Inquiry
from thinkback.session.history.compacting import CheckpointRequest, Compactor
from thinkback.session.planning import plan_of
from thinkback.session.reply import total
from thinkback.session.requests import Options
from thinkback.turn import auto_compaction, pressure

if TYPE_CHECKING:
    from thinkback.session.configuration import Configuration
    from thinkback.session.conversation import Conversation

# Of the writer's context, in characters; the rest is for what it says. The size assumed where it is not known.
_SHARE, _CHARACTERS_PER_TOKEN, _CONTEXT = 0.5, 4, 32_000


class Written(NamedTuple):
    """What became of a summary: its text (empty: none that could be used), by whom, at what cost, what went wrong."""

    text: str
    model: str
    usage: Usage | None = None
    note: str = ""


class Summarising:
    """One summary in the making. ``run`` and ``run_async`` do the same; both need the history to stay as it is."""

    def __init__(self, conversation: Conversation, asked: CheckpointRequest, outline: Outline) -> None:
        found = cut(outline, asked.wish)
        self._store = conversation.store
        self._writer = writer = writer_of(conversation, asked)
        wanted = survivors(outline, found)
        told = transcript(outline, found, writer.size, rationale=writer.settings.compaction_rationale)
        self._inquiry = Inquiry(
            summary.SYSTEM,
            summary.request(told, wanted),
            summary.Summary,
            lambda answer: summary.read(answer, wanted),
            strict=writer.strict,
        )

    def run(self) -> Written:
        """Ask and wait; a failure is a note."""
        try:
            return self._written(self._inquiry.run(self._store, self._writer.place))
        except ThinkbackError as error:
            return self._unwritten(error)

    async def run_async(self) -> Written:
        """The same for asyncio."""
        try:
            return self._written(await self._inquiry.run_async(self._store, self._writer.place))
        except ThinkbackError as error:
            return self._unwritten(error)

    def _written(self, text: str, note: str = "") -> Written:
        return Written(text, self._writer.model, total(self._inquiry.usages), note)

    def _unwritten(self, error: ThinkbackError) -> Written:
        model = self._writer.model
        if isinstance(error, CompactionRefused):
            return self._written("", f"the summary by {model} was refused twice: {error.message}")
        return self._written("", f"{model} could not write the summary: {error.message}")


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


class Writer(NamedTuple):
    """Who writes for a checkpoint: ``model`` with its endpoint, and how many characters of the log it can be given."""

    place: EndpointConfig
    model: str
    size: int
    strict: bool
    settings: Settings


def writer_of(conversation: Conversation, asked: CheckpointRequest) -> Writer:
    """Find who writes for ``asked``. Raises ``NotFoundError``, ``CredentialError``."""
    configuration, book = conversation.current(), conversation.store.rulebook
    place, settings = _place(conversation, configuration, asked), configuration.settings()
    target = place.target(book)
    place.authenticator(book)
    size = int((target.info.context or _CONTEXT) * _CHARACTERS_PER_TOKEN * _SHARE)
    model = f"{target.endpoint.id}/{target.model}"
    return Writer(place, model, size, target.endpoint.strict or settings.strict, settings)


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
