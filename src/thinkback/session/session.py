"""A session: one conversation with a model, kept in the log."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from random import random
from types import TracebackType
from typing import TYPE_CHECKING, Any

from thinkback.drive.log import append
from thinkback.drive.sync import SyncDriver, now
from thinkback.drive.tools import offered
from thinkback.errors import ThinkbackError
from thinkback.log.protocol import SessionInfo
from thinkback.model.commits import Commit, Draft, Message, Step, Tool
from thinkback.model.deltas import Delta
from thinkback.model.target import Decision, Settings, Target
from thinkback.session import requests
from thinkback.session.reply import Reply
from thinkback.settings import Layers, snapshot
from thinkback.turn.machine import Ask, Turn
from thinkback.turn.plan import History, Plan

if TYPE_CHECKING:
    from thinkback.session.aio import AsyncCalls
    from thinkback.session.store import SessionStore
    from thinkback.session.wire import Wire


class Session:
    """One conversation. Made by ``SessionStore.session``; not for several threads at once.

    ``chat`` asks and waits, ``stream`` asks and yields deltas, ``generate`` goes on without a new message;
    ``session.aio`` has the same for asyncio, ``session.wire`` the same without our HTTP.
    """

    def __init__(self, store: SessionStore, info: SessionInfo, place: requests.Place) -> None:
        self._store = store
        self._info = info
        self._place = place
        self._history = History(store.log.read(info.id))
        self._layers = Layers().replace("session", info.settings)
        self._text_warned = False
        self._planned: Plan | None = None

    # -- what it is ------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The name it was opened by."""
        return self._info.name

    @property
    def id(self) -> str:
        """Its id in the log."""
        return self._info.id

    @property
    def target(self) -> Target:
        """Endpoint, model and rule of the next request, resolved now."""
        return self._place.target(self._store.rulebook)

    @property
    def settings(self) -> Settings:
        """The effective settings of the next request, read now."""
        return self._effective({})

    def use(self, endpoint: str | None = None, model: str | None = None, **options: Any) -> None:
        """Switch endpoint, model or HTTP options from the next request on; the history stays."""
        self._place = self._place.changed(self._store.rulebook, endpoint=endpoint, model=model, **options)

    def set(self, key: str, value: object) -> None:
        """Set a setting of this session. Raises ``SettingError``; the old value stays then."""
        self._write_layer(self._layers.set("session", key, value))

    def unset(self, key: str) -> None:
        """Take a setting of this session back."""
        self._write_layer(self._layers.unset("session", key))

    def log(self) -> list[Commit]:
        """Every commit of the session, oldest first."""
        self._refresh()
        return list(self._history.commits)

    # -- turns -----------------------------------------------------------------------------------------------------

    def chat(self, prompt: str | Sequence[Mapping[str, Any]], **options: Any) -> Reply:
        """Ask ``prompt`` (text, or content parts of the dialect) and run the turn to its end.

        Options: ``tools`` (functions or definitions), ``system``, ``params`` (native request fields),
        ``response_format`` (a JSON schema object or a type), ``settings`` (for this call), ``reasoning=False``
        (readable reasoning is not kept), ``max_steps``, ``stream`` (ask the endpoint for a stream; default true).
        Raises ``ProviderError``, ``NetworkError``, ``ReplayRefused``, ``CredentialError``; what arrived is kept.
        """
        return self._finished(self.stream(prompt, **options))

    def generate(self, tool_results: Mapping[str, str] | None = None, **options: Any) -> Reply:
        """Go on without a new message, after ``tool_results`` (call id to text) if given. Options as ``chat``."""
        self._add_results(tool_results or {})
        return self._finished(ReplyStream(self, None, options))

    def stream(self, prompt: str | Sequence[Mapping[str, Any]], **options: Any) -> ReplyStream:
        """Ask and yield deltas as they arrive; ``.reply`` is there afterwards. Closing it early interrupts."""
        return ReplyStream(self, requests.message(prompt), options)

    # -- without our HTTP, and with asyncio ------------------------------------------------------------------------

    @property
    def wire(self) -> Wire:
        """``plan``, ``ingest`` and ``adopt`` for programs that own their HTTP client."""
        from thinkback.session.wire import Wire

        return Wire(self)

    @property
    def aio(self) -> AsyncCalls:
        """``chat``, ``stream`` and ``generate`` for asyncio."""
        from thinkback.session.aio import AsyncCalls

        return AsyncCalls(self)

    # -- why -------------------------------------------------------------------------------------------------------

    def why(self, *, next: bool = False) -> list[Decision]:
        """The decisions of the last request, recomputed from its record and checked; or of the next one."""
        return self.explain(next=next).decisions

    def explain(self, *, next: bool = False, **options: Any) -> Plan:
        """The plan of the last request, rebuilt from its record and checked by its digest, or of the next one."""
        self._refresh()
        if next:
            return self._plan(options)
        return requests.rebuild(self._history.commits)

    # -- inside ----------------------------------------------------------------------------------------------------

    def _finished(self, stream: ReplyStream) -> Reply:
        for _ in stream:
            pass
        return stream.reply

    def _effective(self, call: Mapping[str, object]) -> Settings:
        layers = self._layers.replace("user", self._store.user_settings())
        return layers.replace("call", call).effective(self._place.endpoint_settings(self._store.rulebook))

    def _write_layer(self, layers: Layers) -> None:
        self._store.log.write_settings(self.id, layers.texts("session"))
        self._layers = layers

    def _refresh(self) -> None:
        """Commits that other writers appended since."""
        newer = self._store.log.read(self.id, self._history.head.seq)
        if newer:
            self._history.take(newer)

    def _plan(self, options: Mapping[str, Any], *, with_key: bool = False, tools: Sequence[Tool] | None = None) -> Plan:
        """The next request from what the settings, files and rules say now."""
        settings = self._effective(options.get("settings") or {})
        target = self.target
        if tools is None and options.get("tools") is not None:
            tools = offered(options["tools"])[0]
        params = requests.native_params(target, options)
        plan = self._history.plan(target, settings, tools, params)
        plan.settings = snapshot(settings)
        plan.headers = self._place.headers(self._store.rulebook, with_key=with_key, streams=plan.streams)
        return plan

    def _ask(self, message: Message | None, options: Mapping[str, Any]) -> tuple[Ask, dict[str, Any]]:
        requests.check_options(options)
        tools, runnable = offered(options.get("tools") or ())
        ask = Ask(
            plan=lambda: self._plan(options, with_key=True, tools=tools if options.get("tools") is not None else None),
            message=message,
            system=options.get("system"),
            tools=tools if options.get("tools") is not None else None,
            runnable=frozenset(runnable),
            max_steps=options.get("max_steps", 25),
            max_retries=options.get("max_retries", 3),
            keep_text=self._keeps_text(options),
        )
        return ask, runnable

    def _keeps_text(self, options: Mapping[str, Any]) -> bool:
        keep = self._store.commit_reasoning and options.get("reasoning", True)
        if not keep and not self._text_warned and self.target.rule.later in ("must", "must-after-tools"):
            import warnings

            self._text_warned = True
            warnings.warn(
                f"readable reasoning is not kept, and {self.target.endpoint.id} wants it back in later turns: "
                "a placeholder will go instead",
                stacklevel=5,
            )
        return bool(keep)

    def _turn(self, message: Message | None, options: Mapping[str, Any]) -> tuple[Turn, dict[str, Any]]:
        self._refresh()
        ask, runnable = self._ask(message, options)
        return Turn(self._history, ask, new_id, random), runnable

    def _driver(self, message: Message | None, options: Mapping[str, Any]) -> SyncDriver:
        turn, runnable = self._turn(message, options)
        place = self._place
        transport = place.transport or self._store.transport(place.proxy, place.verify)
        timeouts = options.get("timeouts") or place.timeouts
        return SyncDriver(turn, self._history, self._store.log, self.id, transport, runnable, timeouts)

    def _append(self, drafts: Iterable[Draft]) -> tuple[Commit, ...]:
        step = Step(new_id(), tuple(drafts), now())
        if not step.drafts:
            return ()
        self._refresh()
        stored = append(self._store.log, self.id, step, self._history.head)
        self._history.take([*stored.between, *stored.commits])
        return stored.commits

    def _add_results(self, results: Mapping[str, str]) -> None:
        self._refresh()
        self._append(requests.result_drafts(results, self._history.commits))

    def __repr__(self) -> str:
        return f"<Session {self.name!r}: {len(self._history.commits)} commits, {self._place.endpoint} {self._place.model}>"


class ReplyStream:
    """Deltas of a turn under way. Iterate it to the end, or close it: closing early interrupts the turn."""

    def __init__(self, session: Session, message: Message | None, options: Mapping[str, Any]) -> None:
        self._prompt = message.text if message is not None else None
        self._driver = session._driver(message, options)
        self._deltas = self._driver.run()

    def __iter__(self) -> Iterator[Delta]:
        yield from self._deltas
        outcome = self._driver.outcome
        if outcome is not None and outcome.error is not None:
            raise outcome.error

    @property
    def reply(self) -> Reply:
        """The reply; there once the turn is over (also after an error, with what arrived)."""
        outcome = self._driver.outcome
        if outcome is None:
            raise ThinkbackError("the turn is not over", next_actions=("iterate the stream to its end, or close it",))
        return Reply(outcome, self._prompt)

    def close(self) -> None:
        """End the turn now; what arrived is stored as interrupted."""
        self._deltas.close()  # type: ignore[attr-defined]

    def __enter__(self) -> ReplyStream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def new_id() -> str:
    """A fresh random id."""
    return secrets.token_hex(12)

