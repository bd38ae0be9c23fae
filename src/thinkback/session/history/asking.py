"""A model is asked for one JSON object: through a session of its own in memory, so that the history is not touched.

Promises: the answer has the shape that was asked for, or it is asked once more with what is wrong, then refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from thinkback.errors import CompactionRefused, ProviderError, SettingError, ThinkbackError, UnsupportedContent
from thinkback.log import summary
from thinkback.model.commits import Usage
from thinkback.session.profiles.files import SETTING
from thinkback.session.reply import Reply

if TYPE_CHECKING:
    from thinkback.session.endpoint_config import EndpointConfig
    from thinkback.session.session import Session
    from thinkback.session.store import SessionStore

T = TypeVar("T")
# A request that asks for a schema is refused so by hosts that know none.
_SCHEMA_STATUSES = frozenset({400, 404, 422})


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


class Inquiry(Generic[T]):
    """One question. ``run`` and ``run_async`` do the same and raise what the request raises, or ``CompactionRefused``
    where the answer could not be used twice; ``usages`` are those of all its requests, also then.

    ``accept`` makes the result of an answer, or raises ``CompactionRefused`` with what is wrong. ``strict``: nothing
    may be said of reasoning.
    """

    def __init__(self, system: str, prompt: str, shape: type, accept: Callable[[str], T], *, strict: bool) -> None:
        self.usages: list[Usage] = []
        self._system = system
        self._prompt = prompt
        self._shape = shape
        self._accept = accept
        self._strict = strict
        self._asked_again = False
        self._wants_schema = True
        self._result: T | None = None

    def run(self, store: SessionStore, place: EndpointConfig) -> T:
        """Ask and wait."""
        with apart_from(store, place, "summary") as apart:
            step = self._step(self._prompt)
            while self._result is None:
                try:
                    reply = apart.chat(step.prompt, **step.options) if step.prompt else apart.generate(**step.options)
                except ThinkbackError as error:
                    step = self._failed(error)
                else:
                    step = self._answered(reply)
        return self._result

    async def run_async(self, store: SessionStore, place: EndpointConfig) -> T:
        """The same for asyncio."""
        with apart_from(store, place, "summary") as apart:
            step = self._step(self._prompt)
            while self._result is None:
                calls = apart.aio
                try:
                    reply = await (
                        calls.chat(step.prompt, **step.options) if step.prompt else calls.generate(**step.options)
                    )
                except ThinkbackError as error:
                    step = self._failed(error)
                else:
                    step = self._answered(reply)
        return self._result

    def _step(self, prompt: str) -> Step:
        settings: dict[str, object] = {"compaction.auto": False}
        if not self._strict:
            # Reasoning must not eat what is left of the output for the answer.
            settings["reasoning.effort"] = "low"
        options: dict[str, Any] = {"system": self._system, "settings": settings, "max_steps": 1}
        return Step(prompt, {**options, "response_format": self._shape} if self._wants_schema else options)

    def _answered(self, reply: Reply) -> Step:
        if reply.usage is not None:
            self.usages.append(reply.usage)
        try:
            self._result = self._accept(reply.text)
        except CompactionRefused as error:
            if self._asked_again:
                raise
            self._asked_again = True
            return self._step(summary.again(error.message))
        return Step("", {})

    def _failed(self, error: ThinkbackError) -> Step:
        """Once without a schema, where that may have been too much; else it stays so."""
        refused = isinstance(error, ProviderError) and error.details.get("status") in _SCHEMA_STATUSES
        if self._wants_schema and (refused or isinstance(error, UnsupportedContent | SettingError)):
            self._wants_schema = False
            # What was refused before the network was not stored.
            return self._step("" if refused else self._prompt)
        raise error
