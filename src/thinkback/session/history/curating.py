"""What a person adds to a conversation by hand, or says about a part of it; one at a time or all or nothing."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from thinkback.compile.policy import binds
from thinkback.errors import NotFoundError, ThinkbackError
from thinkback.log import drafting
from thinkback.log.drafting import ContentType, Void
from thinkback.model.commits import Commit, Draft, Payload, Priority, surviving
from thinkback.model.curation import Curation, curate
from thinkback.session.ids import new_id, outside

if TYPE_CHECKING:
    from thinkback.session.conversation import Conversation

_ELSEWHERE = "`thinkback log` lists the commits: it may be on another branch, or in another session (--session)"
_SPOKEN = ("system", "user", "assistant")


class Curator:
    """Makes the drafts of what is said about ``session``, and refuses what must not be said now."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation

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
    ) -> tuple[Draft, ...]:
        """A message, content of a type of one's own, or an edit of what is there."""
        if edit:
            target = self.find(edit)
            self._refuse_change(target, "edited")
            drafts: tuple[Draft, ...] = (drafting.edit(target, text),)
        elif kind in _SPOKEN:
            self._refuse_open(kind)
            drafts = drafting.spoken(kind, text, new_id())
        else:
            drafts = (drafting.content(self._type(kind), text, data),)
        return (*drafts, *_notes(message, metadata, tags))

    def reasoning(
        self, text: str, format: str, message: str, metadata: Mapping[str, Any] | None, tags: Iterable[str]
    ) -> tuple[Draft, ...]:
        """Reasoning by hand."""
        said = drafting.thought(text, drafting.known_format(format))
        return (Draft("reasoning", said), *_notes(message, metadata, tags))

    def annotate(self, name: str, priority: Priority | str | None, **said: Any) -> tuple[Draft, ...]:
        """A mark on a commit."""
        target = self.find(name)
        wanted = None if priority is None else _priority(priority)
        if wanted is Priority.SKIP:
            self._refuse_change(target, "skipped")
        return (drafting.annotation(target.hash, wanted, **said),)

    def restore(self, name: str, version: int) -> tuple[Draft, ...]:
        """An edit that takes a commit back to what it was after ``version`` edits."""
        target = self.find(name)
        versions = self.versions(name)
        if not 0 <= version < len(versions):
            raise NotFoundError(
                f"commit {target.hash[:12]} has no version {version}",
                details={"commit": target.hash, "versions": len(versions)},
                next_actions=(f"give one from 0 (as it was at first) to {len(versions) - 1} (as it is)",),
            )
        self._refuse_change(target, "restored")
        return (drafting.restored(target, versions[version]),)

    def versions(self, name: str) -> list[Payload]:
        """What a commit said: at first, and after each edit."""
        target = self.find(name)
        edits = self._curation().edits.get(target.hash, ())
        return [surviving(commit.value) for commit in (target, *edits)]

    def voids(self, name: str) -> list[Void]:
        """The carriers that an edit or a SKIP would void."""
        conversation = self._conversation
        configuration = conversation.configure()
        bound = configuration.place.is_complete and binds(configuration.target.rule, configuration.settings())
        return drafting.voids(conversation.history.commits, self.find(name), prefix_bound=bound)

    def find(self, name: str) -> Commit:
        """The commit of this line whose hash begins with ``name``; of an edit, what was edited."""
        commits = self._conversation.history.commits
        found = [commit for commit in commits if commit.hash.startswith(name.lower())] if name else []
        if len(found) != 1:
            which = "several commits begin" if found else "no commit of this branch begins"
            raise NotFoundError(f"{which} with {name!r}", next_actions=(_ELSEWHERE,))
        root = self._curation().root(found[0].hash)
        return found[0] if root == found[0].hash else next(commit for commit in commits if commit.hash == root)

    def _curation(self) -> Curation:
        return curate(self._conversation.history.commits)

    def _type(self, name: str) -> ContentType:
        types = self._conversation.store.content_types
        if name not in types:
            raise NotFoundError(
                f"there is no content type {name!r}",
                next_actions=(f"define it with store.register_type, or use one of {', '.join((*_SPOKEN, *types))}",),
            )
        return types[name]

    def _refuse_open(self, kind: str) -> None:
        if kind != "system" and self._conversation.history.open_calls():
            raise ThinkbackError(
                "a turn is under way: its calls have no results yet",
                next_actions=("answer them with generate(tool_results=...), or ask something new with chat",),
            )

    def _refuse_change(self, target: Commit, done: str) -> None:
        """Refuse to change the turn under way; say which carriers go before they do."""
        commits = self._conversation.history.commits
        waiting = self._conversation.history.open_calls()
        if waiting:
            responses = [commit.response for commit in commits if commit.kind == "response"]
            open_ones = set(responses[responses.index(waiting[0].response) :])
            if target.response in open_ones:
                raise ThinkbackError(
                    f"commit {target.hash[:12]} belongs to the turn under way and cannot be {done} now",
                    details={"commit": target.hash},
                    next_actions=("let the turn end first",),
                )
        void = self.voids(target.hash)
        if void:
            named = ", ".join(f"{kind} of {hash[:12]}" for hash, kind in void[:5])
            more = f" and {len(void) - 5} more" if len(void) > 5 else ""
            warnings.warn(f"this voids opaque values that the provider gets back: {named}{more}", stacklevel=outside())


def by_hand(conversation: Conversation) -> Curator:
    """Who makes the drafts, of a session that stands still and is read as it is now."""
    conversation.last_turn.settle()
    conversation.line.refuse_leased()
    conversation.refresh()
    return Curator(conversation)


def stored(conversation: Conversation, drafts: Iterable[Draft]) -> Commit:
    """Store what was said by hand; the commit of its words, or the mark itself where there are none."""
    commits = conversation.append(drafts)
    return next((commit for commit in commits if commit.kind not in ("response", "annotation")), commits[0])


class Batch:
    """Several changes as one step: all of them are stored when the ``with`` block ends, or none if it raises.

    ``commits`` are there afterwards.
    """

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._curator = Curator(conversation)
        self._drafts: list[Draft] = []
        self.commits: tuple[Commit, ...] = ()

    def commit(self, text: str, **options: Any) -> None:
        """As ``Session.commit``."""
        self._drafts += self._curator.commit(text, **options)

    def reasoning(
        self,
        text: str,
        *,
        format: str = "parsed",
        message: str = "",
        metadata: Mapping[str, Any] | None = None,
        tags: Sequence[str] = (),
    ) -> None:
        """As ``Session.reasoning``."""
        self._drafts += self._curator.reasoning(text, format, message, metadata, tags)

    def annotate(self, hash: str, priority: Priority | str | None = None, **said: Any) -> None:
        """As ``Session.annotate``."""
        self._drafts += self._curator.annotate(hash, priority, **said)

    def __enter__(self) -> Batch:
        self._conversation.last_turn.settle()
        self._conversation.line.refuse_leased()
        self._conversation.refresh()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.commits = self._conversation.append(self._drafts)


def _notes(message: str, metadata: Mapping[str, Any] | None, tags: Iterable[str]) -> tuple[Draft, ...]:
    said = tuple(tags)
    return (drafting.annotation(message=message, metadata=metadata, tags=said),) if message or metadata or said else ()


def _priority(word: Priority | str) -> Priority:
    try:
        return Priority(word.lower())
    except ValueError:
        raise ThinkbackError(
            f"{word!r} is not a priority", next_actions=(f"priorities are {', '.join(Priority)}",)
        ) from None
