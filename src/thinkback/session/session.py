"""A session: one conversation with a model, kept in the log."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TextIO, Unpack, overload

from thinkback.drive.hooks import Hook
from thinkback.log.drafting import Void
from thinkback.model.commits import Commit, Payload, Priority
from thinkback.model.curation import matching
from thinkback.model.target import Decision, Decisions, Settings, Target
from thinkback.session import apps, requests, turns
from thinkback.session.history.curating import Batch, Curator, by_hand, stored
from thinkback.session.planning import plan_of
from thinkback.session.profiles.files import SETTING
from thinkback.session.reply import Reply
from thinkback.session.requests import CallOptions, Prompt
from thinkback.session.stream import ReplyStream, finished
from thinkback.session.times import Time, microseconds
from thinkback.settings import Layers
from thinkback.settings.profiles import names_in
from thinkback.settings.registry import DEFAULT
from thinkback.turn.plan import Plan

if TYPE_CHECKING:
    from thinkback.compile.neutral import Compiled
    from thinkback.log.diff import Diff
    from thinkback.session.aio import AsyncCalls
    from thinkback.session.conversation import Conversation
    from thinkback.session.history.branches import Branches
    from thinkback.session.history.compacting import Compactor
    from thinkback.session.history.explaining import Explanation
    from thinkback.session.history.facts import Facts
    from thinkback.session.history.search import Search
    from thinkback.session.profiles.profiles import Profiles
    from thinkback.session.usage import SessionUsage
    from thinkback.session.wire import Wire
    from thinkback.settings.apps import App
    from thinkback.turn.effects import Effect


class Session:
    """One conversation. Made by ``SessionStore.session``. It runs one turn at a time and belongs to one thread or
    event loop at a time; any number of sessions, also of the same name, may be open beside it.

    ``chat`` asks and waits, ``stream`` asks and yields deltas, ``generate`` goes on without a new message;
    ``session.aio`` has the same for asyncio, ``session.wire`` the same without our HTTP.
    """

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation

    @property
    def name(self) -> str:
        """The name it was opened by."""
        return self.conversation.info.name

    @property
    def id(self) -> str:
        """Its id in the log."""
        return self.conversation.info.id

    @property
    def target(self) -> Target:
        """Endpoint, model and rule of the next request, resolved now."""
        return self.conversation.configure().target

    @property
    def settings(self) -> Settings:
        """The effective settings of the next request, read now."""
        return self.conversation.current().settings()

    @property
    def layers(self) -> Layers:
        """Who set what, from the user's file to this session, read now."""
        return self.conversation.current().layers

    @property
    def effects(self) -> Mapping[str, Effect]:
        """What each setting does to the next request: the value in force, who decides it, by scope, and what other
        values would change.
        """
        from thinkback.session.effects import effects_of

        return effects_of(self.conversation)

    @property
    def app(self) -> App | None:
        """The app that the setting ``session.app`` names, read now from its file."""
        return apps.app_of(self.conversation.layers)

    def use(self, endpoint: str | None = None, model: str | None = None, **options: Any) -> None:
        """Switch endpoint, model or HTTP options (those of ``SessionStore.session``) from the next request on.

        The history stays. A key, headers and an account that were given are forgotten with the host they were for.
        """
        conversation = self.conversation
        now = conversation.configure()
        conversation.followed.use(now.place.changed(now.rules, endpoint=endpoint, model=model, **options))
        if model is not None:
            apps.warn_of(conversation.layers, model, conversation.followed.place.endpoint)

    def set(self, key: str, value: object) -> None:
        """Set a setting of this session. Raises ``SettingError``; the old value stays then."""
        if key == SETTING and value != DEFAULT:
            self.profiles.load(*names_in(str(value)))
        else:
            self.conversation.set(key, value)

    def unset(self, key: str) -> None:
        """Take a setting of this session back."""
        conversation = self.conversation
        conversation.read_layer()
        conversation.write_layer(conversation.layers.unset("session", key))

    def take_over(self) -> None:
        """End the turn that somebody else has under way on this branch, and have the branch for the next one.

        What that turn still brings goes to a branch of its own. Where nobody has one, nothing is ended. Raises
        ``ThinkbackError`` for a turn of this session object.
        """
        conversation = self.conversation
        conversation.last_turn.settle()
        conversation.take_over()

    def commit(
        self,
        text: str,
        *,
        kind: str = "user",
        edit: str = "",
        data: Mapping[str, Any] | None = None,
        message: str = "",
        metadata: Mapping[str, Any] | None = None,
        tags: Iterable[str] = (),
    ) -> Commit:
        """Add a message by hand: ``kind`` is system, user, assistant or a content type of one's own (with ``data``).

        With ``edit``, a hash of this branch or its beginning, ``text`` takes the place of what that commit says; it is
        kept, and ``restore`` brings it back. Warns of carriers that this voids. Raises ``ThinkbackError`` for a commit
        of the turn under way.
        """
        said = {"kind": kind, "edit": edit, "data": data, "message": message, "metadata": metadata, "tags": tags}
        return stored(self.conversation, by_hand(self.conversation).commit(text, **said))  # type: ignore[arg-type]

    def reasoning(
        self,
        text: str,
        *,
        format: str = "parsed",
        message: str = "",
        metadata: Mapping[str, Any] | None = None,
        tags: Iterable[str] = (),
    ) -> Commit:
        """Add reasoning by hand, for people, search and ``compile(include_reasoning=True)``; no provider is sent it.

        ``format`` says where it is from: parsed, raw, think_tags, anthropic, or a field that a dialect has
        it in. Raises ``UnsupportedContent`` for any other, and for reasoning that says nothing.
        """
        return stored(self.conversation, by_hand(self.conversation).reasoning(text, format, message, metadata, tags))

    def annotate(
        self,
        hash: str,
        priority: Priority | str | None = None,
        *,
        default: bool = False,
        reason: str = "",
        retain: Sequence[str] = (),
        tags: Iterable[str] = (),
        untag: Iterable[str] = (),
        message: str = "",
        metadata: Mapping[str, Any] | None = None,
    ) -> Commit:
        """Say what is wanted of a commit: ``Priority.SKIP``, ``NORMAL``, ``IMPORTANT`` or ``PINNED``, tags, a note.

        The last word wins, field by field; ``default=True`` takes a priority back. ``retain`` are texts that a summary
        must contain. Warns of carriers that SKIP voids; raises ``ThinkbackError`` for the turn under way.
        """
        said = {
            "default": default,
            "reason": reason,
            "retain": retain,
            "tags": tags,
            "untag": untag,
            "message": message,
        }
        return stored(self.conversation, by_hand(self.conversation).annotate(hash, priority, **said, metadata=metadata))

    def restore(self, hash: str, version: int = 0) -> Commit:
        """Take a commit back to what it said at first (0) or after so many edits; ``versions`` lists them."""
        return stored(self.conversation, by_hand(self.conversation).restore(hash, version))

    def versions(self, hash: str) -> list[Payload]:
        """What a commit said at first and after each edit."""
        self.conversation.refresh()
        return Curator(self.conversation).versions(hash)

    def voids(self, hash: str) -> list[Void]:
        """The carriers that an edit or a SKIP of this commit would make worthless."""
        self.conversation.refresh()
        return Curator(self.conversation).voids(hash)

    def batch(self) -> Batch:
        """``with session.batch() as batch``: ``commit``, ``reasoning`` and ``annotate`` as one step, or none of it."""
        return Batch(self.conversation)

    def log(
        self, *, kinds: Collection[str] = (), tags: Iterable[str] = (), metadata: Mapping[str, Any] | None = None
    ) -> list[Commit]:
        """The commits of the current branch, oldest first; of ``kinds``, with all of ``tags``, and with each member of
        ``metadata``, if given.
        """
        self.conversation.refresh()
        return matching(self.conversation.history.commits, kinds, frozenset(tags), metadata)

    def facts(self, hash: str) -> Facts:
        """What is known of a commit of this session besides its payload: model, endpoint, and what annotations say of
        it (priority, reason, tags, message, metadata). Raises ``NotFoundError``.
        """
        from thinkback.session.history.facts import facts_of

        log, session = self.conversation.store.log, self.conversation.info.id
        return facts_of(log, session, log.find_commit(hash, session)[1])

    def compile(
        self,
        at: str = "",
        *,
        at_time: Time | None = None,
        include_reasoning: bool = False,
        strategy: Literal["full", "last", "adaptive"] = "full",
        turns: int = 5,
        tokens: int = 8_000,
        order: Sequence[str] = (),
    ) -> Compiled:
        """What the conversation says, for any program: at ``at`` (a name of a commit as in git) or as of ``at_time``.

        Reasoning stays out unless ``include_reasoning``, and is then a message of its own; annotations win either way.
        ``strategy`` last keeps the last ``turns``, adaptive what fits into ``tokens`` and of older turns what matters.
        ``order`` are hashes that say in which order messages stand; ``warnings`` of the result tell what that parts.
        """
        from thinkback.session.history.compiling import compiled

        return compiled(self.conversation, at, microseconds(at_time), include_reasoning, strategy, turns, tokens, order)

    def diff(self, old: str, new: str = "HEAD") -> Diff:
        """What is said differently at ``new`` than at ``old`` (names of commits as in git), reasoning included."""
        return self.branches.diff(old, new)

    def pprint(self, style: Literal["chat", "table", "compact"] = "chat", file: TextIO | None = None) -> None:
        """Print the conversation; reasoning is dim. ``file`` is standard output unless given."""
        from thinkback.session.transcripts.printing import pprint

        self.conversation.refresh()
        pprint(self.conversation.history.commits, style, file if file is not None else sys.stdout)

    def chat(self, prompt: Prompt, **options: Unpack[CallOptions]) -> Reply:
        """Ask ``prompt`` (text, or content parts of the dialect) and run the turn to its end.

        Options: ``tools`` (functions or definitions; those of the last call hold until others are given), ``system``,
        ``params`` (native request fields), ``response_format`` (the native field, or a type), ``settings`` (for this
        call), ``reasoning=False`` (readable reasoning is not kept), ``max_steps``, ``max_retries``, ``timeouts``,
        ``stream`` (ask the endpoint for a stream; default true), ``approve`` (asked where permissions want a person).
        Raises ``ProviderError``, ``NetworkError``, ``ReplayRefused``, ``CredentialError``; what arrived is kept.
        """
        return finished(self.stream(prompt, **options))

    def generate(self, tool_results: Mapping[str, str] | None = None, **options: Unpack[CallOptions]) -> Reply:
        """Go on without a new message, after ``tool_results`` (call id to text) if given. Options as ``chat``.

        Runs calls that an earlier turn left open, where it has their functions. Raises ``ThinkbackError`` when a call
        has neither result nor function, ``NotFoundError`` for a result that no open call waits for.
        """
        read = requests.read_options(options)
        stream = ReplyStream(self.conversation, None, read)
        self.conversation.last_turn.settle()
        turns.answer(self.conversation, tool_results or {}, read)
        return finished(stream)

    def stream(self, prompt: Prompt, **options: Unpack[CallOptions]) -> ReplyStream:
        """Ask and yield deltas as they arrive; ``.reply`` is there afterwards. Closing it early interrupts."""
        return ReplyStream(self.conversation, turns.message(self.conversation, prompt), requests.read_options(options))

    @property
    def wire(self) -> Wire:
        """``plan``, ``ingest`` and ``adopt`` for programs that own their HTTP client."""
        from thinkback.session.wire import Wire

        return Wire(self.conversation)

    @property
    def profiles(self) -> Profiles:
        """Settings, endpoint and model under a name: save, load, list, delete, default."""
        from thinkback.session.profiles.profiles import Profiles

        return Profiles(self.conversation)

    @property
    def branches(self) -> Branches:
        """Branches, forks, merges, and where this session stands."""
        from thinkback.session.history.branches import Branches

        return Branches(self.conversation)

    @property
    def search(self) -> Search:
        """Full-text search in what was said and thought."""
        from thinkback.session.history.search import Search

        return Search(self.conversation)

    @property
    def usage(self) -> SessionUsage:
        """Tokens by step, turn and model, and what the next request will carry."""
        from thinkback.session.usage import SessionUsage

        return SessionUsage(self.conversation)

    @property
    def compaction(self) -> Compactor:
        """Checkpoints: say a long history in fewer words, and delete nothing."""
        from thinkback.session.history.compacting import Compactor

        return Compactor(self.conversation)

    @property
    def aio(self) -> AsyncCalls:
        """``chat``, ``stream`` and ``generate`` for asyncio."""
        from thinkback.session.aio import AsyncCalls

        return AsyncCalls(self.conversation)

    @overload
    def why(self, *, next: bool = False) -> list[Decision]: ...
    @overload
    def why(self, hash: str) -> Explanation: ...
    def why(self, hash: str = "", *, next: bool = False) -> list[Decision] | Explanation:
        """The decisions of the last request, recomputed from its record and checked; or of the next one.

        With the beginning of a hash: which reasoning led to that call, answer or result, and what the request that
        brought it carried; of a request, what it carried. Also of commits on other branches of the session.
        """
        if not hash:
            return Decisions(self.explain(next=next).decisions)
        from thinkback.session.history.explaining import explain

        return explain(self.conversation, hash)

    def explain(self, *, next: bool = False, **options: Unpack[CallOptions]) -> Plan:
        """The plan of the last request, rebuilt from its record and checked by its digest, or of the next one."""
        read = requests.read_options(options)
        self.conversation.refresh()
        if next:
            return plan_of(self.conversation, self.conversation.configure(), read)
        return requests.rebuild(self.conversation.history.commits)

    def on(self, event: str, hook: Hook) -> None:
        """Call ``hook`` on ``event`` (``drive.hooks`` lists them); a ``pre_`` hook refuses by raising ``Veto``."""
        self.conversation.line.hooks.on(event, hook)

    def _repr_html_(self) -> str:
        """For notebooks: the end of the conversation."""
        from thinkback.session.transcripts.notebook import session_html

        return session_html(self.name, repr(self), self.log())

    def _repr_markdown_(self) -> str:
        """The same as Markdown."""
        from thinkback.session.transcripts.notebook import session_markdown

        return session_markdown(self.name, repr(self), self.log())

    def __repr__(self) -> str:
        place = self.conversation.followed.place
        where = f"{place.endpoint or place.base_url} {place.model}".strip()
        known = vars(self.conversation).get("history")
        commits = len(known.commits) if known is not None else self.conversation.info.commits
        return f"<Session {self.name!r}: {commits} commits, {where}>"
