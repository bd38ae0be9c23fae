"""The agent that an editor talks to: its conversations by id, and each request of the protocol.

Promises: a request that cannot be done is answered with an error that says what to do, without a key in it, and ends
nothing else.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import acp
from acp import schema

import thinkback
from thinkback.errors import CredentialError, NotFoundError, SettingError, ThinkbackError, UnsupportedContent
from thinkback.servers import stdio
from thinkback.servers.acp import options
from thinkback.servers.acp.buffers import EditorBuffers
from thinkback.servers.acp.conversation import Conversation
from thinkback.session.destination import Destination, check_destination, open_at, remembered
from thinkback.session.masking import without_keys
from thinkback.session.session import Session
from thinkback.session.store import SessionStore
from thinkback.session.stream import busy
from thinkback.session.transcripts.ink import iso

_PAGE = 50
_KEY = "environment"
_EFFORTS = ("reasoning_effort", options.EFFORT)
"""What a prompt may say in its ``_meta``: the effort of this one turn."""
_FAILED = -32603
_CODES: dict[type[ThinkbackError], int] = {
    CredentialError: -32000,
    NotFoundError: -32002,
    SettingError: -32602,
    UnsupportedContent: -32602,
}


class Start(NamedTuple):
    """What the command line says of every conversation; ``models`` are further ones that may be chosen."""

    place: Destination
    profile: str = ""
    app: str = ""
    models: tuple[str, ...] = ()


class EditorAgent:
    """The protocol's agent side. One method for each request, named as the library wants it."""

    def __init__(self, store: SessionStore, start: Start) -> None:
        self._store = store
        self._start = start
        self._conversations: dict[str, Conversation] = {}
        self._client: Any = None
        self._files: Any = None

    def on_connect(self, conn: Any) -> None:
        """The editor is there."""
        self._client = conn

    async def initialize(self, protocol_version: int, client_capabilities: Any = None, **_: Any) -> Any:
        """Say what is understood."""
        self._files = client_capabilities.fs if client_capabilities is not None else None
        return acp.InitializeResponse(
            protocol_version=min(protocol_version, acp.PROTOCOL_VERSION) or acp.PROTOCOL_VERSION,
            agent_info=schema.Implementation(name="thinkback", title="thinkback", version=thinkback.__version__),
            agent_capabilities=schema.AgentCapabilities(
                load_session=True,
                mcp_capabilities=schema.McpCapabilities(http=True),
                prompt_capabilities=schema.PromptCapabilities(image=True, embedded_context=True),
                session_capabilities=schema.SessionCapabilities(
                    list=schema.SessionListCapabilities(),
                    resume=schema.SessionResumeCapabilities(),
                    close=schema.SessionCloseCapabilities(),
                ),
            ),
            auth_methods=[
                schema.AuthMethodAgent(
                    id=_KEY,
                    name="A key in the environment",
                    description="Set the endpoint's variable where the editor starts thinkback, then start it again.",
                )
            ],
        )

    async def authenticate(self, method_id: str, **_: Any) -> Any:
        """Look whether the key is there now."""
        with _protocol_errors():
            if method_id != _KEY:
                raise NotFoundError(f"there is no way to sign in called {method_id!r}")
            session = self._begun(_fresh_name())
            self._store.log.care.delete_session(session.id)
        return acp.AuthenticateResponse()

    async def new_session(self, cwd: str, mcp_servers: Sequence[Any] | None = None, **_: Any) -> Any:
        """Begin a conversation."""
        with _protocol_errors():
            name = _fresh_name()
            conversation = await self._hold(name, self._begun(name), cwd, mcp_servers or ())
            return acp.NewSessionResponse(session_id=name, **conversation.chosen())

    async def load_session(self, cwd: str, session_id: str, mcp_servers: Sequence[Any] | None = None, **_: Any) -> Any:
        """Go on with a conversation, and tell what was said and thought in it."""
        with _protocol_errors():
            conversation = await self._again(session_id, cwd, mcp_servers or ())
            await conversation.replay()
            return acp.LoadSessionResponse(**conversation.chosen())

    async def resume_session(
        self, cwd: str, session_id: str, mcp_servers: Sequence[Any] | None = None, **_: Any
    ) -> Any:
        """Go on with a conversation that the editor still shows."""
        with _protocol_errors():
            conversation = await self._again(session_id, cwd, mcp_servers or ())
            return schema.ResumeSessionResponse(**conversation.chosen())

    async def list_sessions(self, cwd: str | None = None, cursor: str | None = None, **_: Any) -> Any:
        """The sessions of the log, last used first. The log knows no workspaces: each is said to be of ``cwd``."""
        with _protocol_errors():
            if cursor and not (cursor.isascii() and cursor.isdigit()):
                raise SettingError(f"{cursor!r} is not a cursor of this list")
            first = int(cursor or 0)
            found = [info for info in self._store.sessions() if info.commits]
            page = [
                schema.SessionInfo(session_id=info.name, cwd=cwd or "/", title=info.name, updated_at=iso(info.updated))
                for info in found[first : first + _PAGE]
            ]
            following = str(first + _PAGE) if first + _PAGE < len(found) else None
            return schema.ListSessionsResponse(sessions=page, next_cursor=following)

    async def close_session(self, session_id: str, **_: Any) -> Any:
        """End a conversation; its session stays in the log, unless nothing was said in it."""
        with _protocol_errors():
            conversation = self._conversation(session_id)
            del self._conversations[session_id]
            await conversation.end()
            return schema.CloseSessionResponse()

    async def set_session_mode(self, mode_id: str, session_id: str, **_: Any) -> Any:
        """Permit calls in another way from now on."""
        with _protocol_errors():
            conversation = self._conversation(session_id)
            await conversation.choose(options.MODE, mode_id)
            return acp.SetSessionModeResponse()

    async def set_config_option(self, config_id: str, session_id: str, value: str | bool, **_: Any) -> Any:
        """Choose something else from the next request on."""
        with _protocol_errors():
            conversation = self._conversation(session_id)
            return acp.SetSessionConfigOptionResponse(config_options=await conversation.choose(config_id, value))

    async def prompt(self, prompt: Sequence[Any], session_id: str, **meta: Any) -> Any:
        """Run a turn. ``_meta`` may say ``reasoning_effort``, for this one."""
        with _protocol_errors():
            conversation = self._conversation(session_id)
            efforts = [meta[key] for key in _EFFORTS if key in meta]
            return await conversation.prompt(prompt, {options.EFFORT: efforts[0]} if efforts else {})

    async def cancel(self, session_id: str, **_: Any) -> None:
        """End the turn of a conversation; one that has none, or that is not there, needs no ending."""
        conversation = self._conversations.get(session_id)
        if conversation is not None:
            await conversation.cancel()

    async def end(self) -> None:
        """The editor is gone."""
        for conversation in self._conversations.values():
            await conversation.end()
        self._conversations.clear()

    def _conversation(self, id: str) -> Conversation:
        found = self._conversations.get(id)
        if found is None:
            raise NotFoundError(
                f"no conversation {id!r} is open", next_actions=("begin one with session/new, or session/load one",)
            )
        return found

    async def _again(self, id: str, cwd: str, servers: Sequence[Any]) -> Conversation:
        """A conversation of a session that is in the log."""
        known = self._conversations.get(id)
        if known is not None and known.is_running:
            raise busy()
        info = self._store.find(id)
        place = remembered(self._store, info, self._store.commits(info.id), self._start.place)
        session = _opened(self._store, info.name, place)
        _check_key(session)
        if known is not None:
            await known.end()
        return await self._hold(id, session, cwd, servers)

    async def _hold(self, id: str, session: Session, cwd: str, servers: Sequence[Any]) -> Conversation:
        buffers = EditorBuffers(self._client, id, self._files)
        conversation = Conversation(self._client, id, session, cwd, self._start.models, buffers)
        try:
            await conversation.begin(servers)
        except BaseException:
            await conversation.end()
            raise
        self._conversations[id] = conversation
        return conversation

    def _begun(self, name: str) -> Session:
        """A new session. Raises what would keep its first request from being sent; there is none then."""
        session = _opened(self._store, name, self._start.place, self._start.app, self._start.profile)
        try:
            _check_key(session)
        except BaseException:
            self._store.log.care.delete_session(session.id)
            raise
        return session


def _opened(store: SessionStore, name: str, to: Destination, app: str = "", profile: str = "") -> Session:
    """The session called ``name``, made if it is not there; its notices go to standard error."""
    session = open_at(store, name, to, app, profile)
    session.on("notice", lambda text: stdio.complain(f"note: {text}"))
    return session


def _check_key(session: Session) -> None:
    """Raise what would keep the first request from being sent."""
    place, book = session.conversation.configure().place, session.conversation.store.rulebook
    check_destination(Destination(place.endpoint, place.model, place.base_url), book)
    place.target(book)
    place.headers(book, streams=True)
    place.authenticator(book)


def _fresh_name() -> str:
    return time.strftime("acp-%Y%m%d-%H%M%S-", time.localtime()) + secrets.token_hex(2)


@contextlib.contextmanager
def _protocol_errors() -> Iterator[None]:
    """Tell the editor of what goes wrong inside, without keys."""
    try:
        yield
    except acp.RequestError:
        raise
    except ThinkbackError as error:
        text = without_keys(error.for_people())
        code = next((code for kind, code in _CODES.items() if isinstance(error, kind)), _FAILED)
        raise acp.RequestError(code, text, {"kind": error.kind}) from None
    except Exception as error:  # the outermost place of a request: what fails here is ours, and is told as such
        text = without_keys(f"unexpected failure: {type(error).__name__}: {error}")
        raise acp.RequestError(_FAILED, text) from None
