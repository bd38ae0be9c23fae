"""``open``: a store of sessions, and what is common to all of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache
from types import TracebackType
from typing import IO, TYPE_CHECKING, Literal, Unpack, get_args

from thinkback.drive.leases import PERIOD
from thinkback.errors import NotFoundError, ThinkbackError
from thinkback.log.drafting import ContentType
from thinkback.log.progress import Progress
from thinkback.log.protocol import Problem, SessionInfo
from thinkback.log.protocol import Store as Log
from thinkback.model.commits import Commit, Kind, Priority
from thinkback.session import config
from thinkback.stores import open_store

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from thinkback.drive.auth import Keyring
    from thinkback.drive.http import AsyncTransport, Httpx2Transport, Timeouts, Transport, Verify
    from thinkback.observe.usage_log import UsageLog
    from thinkback.rules import Rulebook
    from thinkback.session.destination import Destination
    from thinkback.session.endpoint_config import EndpointConfig
    from thinkback.session.exchange.exporting import Exported
    from thinkback.session.exchange.importing import Imported
    from thinkback.session.history.erasing import StoreCare
    from thinkback.session.history.search import Filters, SearchHit
    from thinkback.session.session import Session
    from thinkback.session.usage import StoreUsage


def open(
    path: str | os.PathLike[str],
    *,
    commit_reasoning: bool = True,
    durability: Literal["full", "normal"] = "full",
    rules: Mapping[str, str] | None = None,
    settings: Mapping[str, object] | None = None,
    tenant: str = "default",
    connections: int = 8,
    usage_log: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> SessionStore:
    """Open the log at ``path`` (``":memory:"`` for none on disk), making it if it is not there.

    ``path`` may be a ``postgresql://`` address; there many tenants share a database, each with a log that no other
    sees, and at most ``connections`` are open at once. ``commit_reasoning=False`` keeps readable reasoning out of the
    log. ``rules`` (file name to TOML text) and ``settings`` replace the user's own files. ``usage_log`` is a file that
    gets a JSON line for each request (docs/usage.md). ``progress`` counts the steps of upgrading a log of an older
    format, which the first write does. Raises ``StoreError``, ``FormatVersionError``, ``RuleFileError``.
    """
    log = open_store(path, durability, tenant, connections, progress)
    store = SessionStore(log, commit_reasoning, rules, settings, tenant, usage_log)
    place = os.fspath(path)
    store.place = "" if place == ":memory:" else place
    store.file = "" if place == ":memory:" or "://" in place else os.path.abspath(place)
    return store


_HEADINGS = ("session", "commits", "branch", "last used")


class SessionStore:
    """An open log. Use it as a context manager, or call ``close``."""

    def __init__(
        self,
        log: Log,
        commit_reasoning: bool,
        rules: Mapping[str, str] | None,
        settings: Mapping[str, object] | None,
        tenant: str = "default",
        usage_log: str | os.PathLike[str] | None = None,
    ) -> None:
        self.log = log
        self.tenant = tenant
        # Who opened it: a process that is forked from that one cannot use its connections.
        self.process = os.getpid()
        # Its path or address, and its own file, where it is one.
        self.place = ""
        self.file = ""
        self.commit_reasoning = commit_reasoning
        # Seconds between renewals of a lease.
        self.lease_period = PERIOD
        self.content_types: dict[str, ContentType] = {}
        self._rules = rules
        self._settings = settings
        self._usage_log = usage_log
        self._executor: ThreadPoolExecutor | None = None
        self._transports: dict[tuple[object, object], Httpx2Transport] = {}

    @cached_property
    def rulebook(self) -> Rulebook:
        """Endpoints, rules and models: ours, with the user's files laid on them."""
        from thinkback.rules import load_rulebook

        return config.rulebook() if self._rules is None else load_rulebook(dict(self._rules))

    @cached_property
    def usage_log(self) -> UsageLog | None:
        """Where requests leave a line each, if anywhere."""
        if self._usage_log is None:
            return None
        from thinkback.observe.usage_log import UsageLog

        return UsageLog(self._usage_log)

    @cached_property
    def _keyring(self) -> Keyring:
        """Sign-ins that the sessions share."""
        from thinkback.drive.auth import Keyring

        return Keyring()

    def user_settings(self) -> Mapping[str, object]:
        """The user layer of the settings, read now; a program's own mapping may change, so that it is copied."""
        if self._settings is not None:
            return dict(self._settings)
        file = config.user_settings_file()
        if file is None:
            return {}
        return _parsed(*file)

    def session(
        self,
        name: str,
        *,
        endpoint: str = "",
        model: str = "",
        base_url: str = "",
        api_key: str | None = None,
        key_env: str = "",
        headers: Mapping[str, str] | None = None,
        proxy: str | None = None,
        verify: Verify = True,
        timeouts: Timeouts | None = None,
        transport: Transport | AsyncTransport | None = None,
        client: object = None,
        account: str = "",
        profile: str = "",
        app: str = "",
        wait: float = 0,
    ) -> Session:
        """The session ``name``, made if it is not there; endpoint and model hold from the next request on.

        What is not given, the session knows: from its profiles, its last request, ``THINKBACK_ENDPOINT`` and
        ``THINKBACK_MODEL``, or the user's default profiles. Raises ``NotFoundError`` for an ``endpoint`` that is not
        there, with the names most like it. ``base_url`` alone is enough for a server that is not in the catalogue.
        ``api_key`` is a key, ``key_env`` the name of one where it is not the endpoint's. ``proxy`` and ``verify`` (CA
        file or directory, ``ssl.SSLContext`` or ``False``) override the environment; ``transport`` replaces our HTTP
        client, ``client`` (anything with ``chat(**request)``, maybe with ``extract_reasoning(response)``) the provider
        too; ``account`` names the account where one key replaces another; ``profile`` (names, separated by commas) says
        what is not given, and is the session's from here on (``default``: none). ``app`` is what a new session is for;
        it stays with the session, and says what neither the caller nor a profile does. ``wait`` is how many seconds to
        wait where somebody else has a turn under way on the branch (``math.inf``: until it ends); then ``BusyError`` is
        raised.
        """
        from thinkback.drive.http import Timeouts
        from thinkback.session.endpoint_config import EndpointConfig

        if client is not None:
            from thinkback.drive.client import ADDRESS, ClientTransport

            transport = ClientTransport(client)
            base_url = base_url or ("" if endpoint else ADDRESS)
        if endpoint:
            self.rulebook.endpoint(endpoint)
        place = EndpointConfig(
            model=model,
            endpoint=endpoint,
            base_url=base_url.rstrip("/"),
            api_key=api_key,
            key_env=key_env,
            headers_given=dict(headers or {}),
            proxy=proxy,
            verify=verify,
            timeouts=timeouts or Timeouts(),
            transport=transport,
            account=account,
            keyring=self._keyring,
        )
        opened = self._open(name, place, profile, app)
        opened.conversation.holder.wait = wait
        return opened

    def existing(self, info: SessionInfo, place: Destination | None = None) -> Session:
        """The session of ``info``, for requests to ``place``, else where it knows; unlike with ``session`` none is ever
        made. Raises ``NotFoundError`` for an endpoint that is not there.
        """
        from thinkback.session.conversation import Conversation
        from thinkback.session.endpoint_config import EndpointConfig
        from thinkback.session.session import Session

        given = place._asdict() if place is not None else {"model": ""}
        if given.get("endpoint"):
            self.rulebook.endpoint(given["endpoint"])
        return Session(Conversation(self, info, EndpointConfig(**given, keyring=self._keyring)))

    def _open(self, name: str, place: EndpointConfig, profile: str, app: str) -> Session:
        """The session ``name``, made if it is not there, for requests to ``place``."""
        from thinkback.drive.clock import now
        from thinkback.session import apps
        from thinkback.session.configuration import checked
        from thinkback.session.conversation import Conversation
        from thinkback.session.ids import new_id
        from thinkback.session.profiles.files import SETTING
        from thinkback.session.session import Session
        from thinkback.settings.profiles import names_in
        from thinkback.settings.registry import BEGUN_WITH, DEFAULT, NEWEST

        if app:
            apps.find(app)
        if profile not in ("", DEFAULT):
            checked(self.rulebook, place, names_in(profile), fill=True)
        info = self.log.create_session(new_id(), name, now(), settings={BEGUN_WITH: str(NEWEST)})
        conversation = Conversation(self, info, place)
        if profile:
            conversation.write_layer(conversation.layers.set("session", SETTING, ",".join(names_in(profile))))
        if app:
            conversation.set(apps.KEY, app)
        apps.warn_of(conversation.layers, place.model, conversation.followed.place.endpoint)
        return Session(conversation)

    @property
    def has_own_settings(self) -> bool:
        """Whether the program gave settings in place of the user's file."""
        return self._settings is not None

    def register_type(
        self,
        name: str,
        *,
        role: Literal["system", "user", "assistant"] = "user",
        priority: Priority = Priority.NORMAL,
        compression_priority: int = 50,
    ) -> ContentType:
        """Define a content type for ``session.commit(kind=name)``; its commits keep the defaults they were made with.

        Raises ``ThinkbackError`` for a name that thinkback uses itself.
        """
        if name in get_args(Kind) or not name.isidentifier():
            raise ThinkbackError(f"{name!r} cannot be a content type", next_actions=("take another name",))
        made = self.content_types[name] = ContentType(name, role, priority, compression_priority)
        return made

    def sessions(self, most: int | None = None) -> list[SessionInfo]:
        """All sessions, last used first, or the first so many of them."""
        return self.log.list_sessions(most)

    def find(self, name: str) -> SessionInfo:
        """The session of that name or id. Raises ``NotFoundError``."""
        found = self.log.find_session(name)
        if found is None:
            raise NotFoundError(
                f"there is no session {name!r}",
                details={"session": name},
                next_actions=("`thinkback sessions` lists them",),
            )
        return found

    def commits(self, session: str) -> list[Commit]:
        """The commits of a session's current branch, oldest first."""
        info = self.find(session)
        return self.log.read(info.id, branch=info.branch)

    def search(
        self, text: str = "", *, session: str = "", progress: Progress | None = None, **filters: Unpack[Filters]
    ) -> list[SearchHit]:
        """What was said and thought in all sessions, or in that of a name or id; as ``session.search``.

        ``progress`` is called with how many commits the index was filled with.
        """
        from thinkback.session.history.search import search

        return search(self.log, text, self.find(session).id if session else "", progress, **filters)

    def find_reasoning(
        self, text: str = "", *, session: str = "", progress: Progress | None = None, **filters: Unpack[Filters]
    ) -> list[SearchHit]:
        """Like ``search()``, in reasoning only."""
        filters["kinds"] = ("reasoning",)
        return self.search(text, session=session, progress=progress, **filters)

    def usage(self) -> StoreUsage:
        """What all sessions used, read off the log; each response counts once."""
        from thinkback.session.usage import usage

        return usage(self.log)

    def fsck(self, progress: Progress | None = None) -> list[Problem]:
        """Every disagreement between what is stored and its hashes; an empty list is a clean log."""
        failed: list[Exception] = []

        def report(done: int, of: int, unit: str) -> None:
            if failed or progress is None:
                return
            try:
                progress(done, of, unit)
            except Exception as error:  # what a log raises that is damaged is a finding; this is none
                failed.append(error)
                raise

        problems = list(self.log.fsck(report if progress is not None else None))
        if failed:
            raise failed.pop(0)
        return problems

    def export(
        self,
        to: str | os.PathLike[str] | IO[bytes],
        *,
        session: str = "",
        branch: str = "",
        family: bool = False,
        format: str = "",
        with_reasoning: bool = False,
        with_carriers: bool = False,
        with_history: bool = False,
        complete: bool = False,
        progress: Progress | None = None,
    ) -> Exported:
        """Write the log, one ``session``, or its whole ``family`` to a file or stream; returns how much that was.

        ``format`` is jsonl (which ``import_`` reads), markdown, html or parquet; without it the file's ending says.
        Markdown and HTML have one branch of a session, the current one or ``branch``; the others have all.
        What nobody said stays here: reasoning, carriers and accounts go along where they are asked for, everything with
        ``complete``, as for a copy of one's own. ``with_history`` shows what edits and checkpoints replaced, as
        ``complete`` does.
        ``progress`` is called with how much is done, of how much (0: not known), and of what.
        Raises ``NotFoundError``, ``MissingPackageError``.
        """
        from thinkback.drive.clock import now
        from thinkback.log.sharing import Sharing
        from thinkback.session.exchange import exporting

        sharing = Sharing(with_reasoning, with_carriers, complete)
        return exporting.export(
            self.log,
            to,
            now(),
            session=session,
            branch=branch,
            family=family,
            format=format,
            sharing=sharing,
            history=with_history,
            progress=progress,
        )

    def import_(self, source: str | os.PathLike[str] | Iterable[bytes], progress: Progress | None = None) -> Imported:
        """Take in what ``export`` wrote as jsonl (a file, or its lines); what is there already stays as it is.

        Raises ``ExportFileError`` with the line that was changed or is missing, ``FormatVersionError``.
        """
        from thinkback.session.exchange.importing import import_file

        return import_file(self.log, source, progress)

    def backup(self, path: str | os.PathLike[str], progress: Progress | None = None) -> None:
        """A whole copy of the log as of now, while others go on writing. Raises ``StoreError`` if ``path`` exists."""
        self.log.care.backup(os.fspath(path), progress)

    @property
    def care(self) -> StoreCare:
        """``delete_session``, ``purge`` and ``redact``."""
        from thinkback.session.history.erasing import StoreCare

        return StoreCare(self.log, self.tenant, self.place, self.usage_log)

    @property
    def executor(self) -> ThreadPoolExecutor:
        """Threads for the asyncio side's appends, of this store alone."""
        if self._executor is None:
            from concurrent.futures import ThreadPoolExecutor

            self._executor = ThreadPoolExecutor(4, thread_name_prefix="thinkback-store")
        return self._executor

    def transport(self, proxy: str | None, verify: Verify) -> Httpx2Transport:
        """The HTTP client for these options, shared by the sessions of this store so that connections are."""
        from thinkback.drive.http import Httpx2Transport

        if (proxy, verify) not in self._transports:
            self._transports[proxy, verify] = Httpx2Transport(proxy, verify)
        return self._transports[proxy, verify]

    def close(self) -> None:
        """Close the log and every connection. Sessions made from it cannot be used any more."""
        executor, self._executor = self._executor, None
        if executor is not None:
            executor.shutdown(wait=True)
        for transport in self._transports.values():
            transport.close()
        self.log.close()

    def __repr__(self) -> str:
        return f"<SessionStore {self.file or self.tenant}>"

    def _repr_html_(self) -> str:
        """For notebooks: the sessions."""
        from thinkback.model.tables import html_table

        return html_table(_HEADINGS, self._rows())

    def _repr_markdown_(self) -> str:
        """The same as Markdown."""
        from thinkback.model.tables import markdown_table

        return markdown_table(_HEADINGS, self._rows())

    def _rows(self) -> list[tuple[str, ...]]:
        from thinkback.session.transcripts.ink import readable

        return [(info.name, str(info.commits), info.branch, readable(info.updated)) for info in self.sessions()]

    def __enter__(self) -> SessionStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@lru_cache(maxsize=4)
def _parsed(name: str, text: str) -> Mapping[str, object]:
    """A settings file. Each request asks for it many times, and it seldom differs from the last time."""
    from thinkback.settings import parse_user_file

    return parse_user_file(name, text)
