"""What a person changes of a log by way of the viewer: what it would do is told first, and then done once.

Promises: all of it goes through the session, so that everything is a commit, a branch or an erasure as the command line
makes them; what is done is what was told, on the branch as it stood then. Must not: know HTML or HTTP.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import warnings
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any, NamedTuple

from thinkback.drive.clock import now
from thinkback.errors import HeadMovedError, NotFoundError, ThinkbackError
from thinkback.log.drafting import Void
from thinkback.log.protocol import SessionInfo
from thinkback.log.seal import seal
from thinkback.model.commits import Commit, Step
from thinkback.model.target import WITHHELD, Decision
from thinkback.session.conversation import Conversation
from thinkback.session.destination import Destination, open_at
from thinkback.session.history.curating import Curator
from thinkback.session.history.erasing import Gone
from thinkback.session.history.titling import set_title
from thinkback.session.planning import plan_of
from thinkback.session.requests import read_options
from thinkback.session.session import Session
from thinkback.session.store import SessionStore
from thinkback.turn.plan import Plan

ACTS: Mapping[str, tuple[str, ...]] = {
    "annotate": ("priority", "reason", "tags", "untag", "message"),
    "edit": ("text",),
    "branch": ("name",),
    "redact": ("pattern", "reason"),
    "title": ("text",),
}
"""What can be done, and what is given for it."""
PRIORITIES = ("", "skip", "normal", "important", "pinned", "default")


class Change(NamedTuple):
    """What is wanted of the commit ``target``, or of its session."""

    act: str
    target: str
    given: Mapping[str, str]

    @property
    def packed(self) -> str:
        """It as one word, which no browser changes on its way back."""
        return b64encode(json.dumps([self.act, dict(self.given)], sort_keys=True).encode()).decode()


class Turned(NamedTuple):
    """A part of the block ``hash`` that goes back in one of two plans, and why it does not in the other."""

    hash: str
    what: str
    reason: str


class Effect(NamedTuple):
    """What a change does to the next request: ``lost`` goes back in it now, ``gained`` does not. ``is_same``: its bytes
    stay as they are; ``refused`` says why there would be none.
    """

    lost: Sequence[Turned] = ()
    gained: Sequence[Turned] = ()
    is_same: bool = False
    refused: str = ""


class Outlook(NamedTuple):
    """What a change would do to the branch that ends at ``head``.

    ``effect`` is what it does to the next request, ``None`` where that is not touched or nobody says where it goes.
    ``voids`` are opaque values that would not go back any more, ``gone`` what would be erased in the sessions
    ``sessions``. ``sent_anew``: messages from the change on no longer stand in a provider's cache; ``replies`` were
    written after it, and stay. ``files`` of other programs would still hold what is erased here.
    """

    change: Change
    head: str
    voids: Sequence[Void] = ()
    gone: Sequence[Gone] = ()
    sessions: Sequence[str] = ()
    files: Sequence[str] = ()
    sent_anew: bool = False
    replies: int = 0
    effect: Effect | None = None


def change_of(act: str, target: str, given: Mapping[str, str]) -> Change:
    """The change that a form asks for. Raises ``ThinkbackError`` for one that says nothing or that nobody offers."""
    if act not in ACTS or (act == "title") != (not target):
        raise NotFoundError("there is nothing like that to be done", next_actions=("go back and choose again",))
    said = {name: given.get(name, "").replace("\r\n", "\n") for name in ACTS[act]}
    for name in said.keys() - {"text"}:
        said[name] = said[name].strip()
    if said.get("priority", "") not in PRIORITIES:
        raise ThinkbackError("that is no priority", next_actions=(f"priorities are {', '.join(PRIORITIES[1:])}",))
    needed = {"edit": "text", "branch": "name", "redact": "pattern", "title": "text"}.get(act)
    if (needed is not None and not said[needed].strip()) or not any(said.values()):
        raise ThinkbackError("nothing was filled in", next_actions=("go back and say what is wanted",))
    return Change(act, target, said)


def unpacked(word: str, target: str) -> Change:
    """The change that ``packed`` made a word of. Raises ``ThinkbackError``."""
    try:
        act, given = json.loads(b64decode(word.encode("ascii"), validate=True))
        return change_of(str(act), target, {str(name): str(value) for name, value in dict(given).items()})
    except (ValueError, TypeError):
        raise ThinkbackError("this is not what was shown", next_actions=("go back and begin again",)) from None


class Writing:
    """Changes to the log of ``store``, one at a time. ``secret`` seals what was told."""

    def __init__(self, store: SessionStore, secret: bytes = b"") -> None:
        self._store = store
        self._secret = secret or secrets.token_bytes(32)
        self._lock = Lock()

    def token(self, session: str) -> str:
        """What a form of ``session`` carries, so that it is known for one of ours."""
        return self._sealed("form", session)

    def is_ours(self, session: str, token: str) -> bool:
        """Whether ``token`` is that of ``session``."""
        return _same(token, self.token(session))

    def seal(self, session: str, outlook: Outlook) -> str:
        """What the confirmation of ``outlook`` carries: it holds for this change on this head alone."""
        return self._sealed("done", session, outlook.head, outlook.change.target, outlook.change.packed)

    def outlook(self, info: SessionInfo, change: Change) -> Outlook:
        """What ``change`` would do. Raises ``ThinkbackError`` where it cannot be done."""
        with self._lock, warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            session = open_at(self._store, info.name, Destination())
            session.on("notice", lambda _: None)
            session.conversation.refresh()
            commits = session.conversation.history.commits
            told = Outlook(change, commits[-1].hash if commits else "")
            if change.act == "redact":
                return self._erasing(info, change, told, commits)
            if change.act not in ("edit", "annotate"):
                return told
            target = _found(commits, change.target)
            priority = change.given.get("priority", "skip")  # an edit takes away what a skip does
            if not priority:
                return told
            voids = session.voids(target.hash) if priority == "skip" else ()
            return _after(told, commits, target)._replace(voids=voids, effect=_effect(session.conversation, change))

    def do(self, info: SessionInfo, change: Change, head: str, seal: str) -> str:
        """Do what was told. Returns the hash of the commit to look at, or the name of a new branch.

        Raises ``HeadMovedError`` where the branch ends elsewhere by now, ``BusyError`` where a turn is under way.
        """
        if not _same(seal, self.seal(info.id, Outlook(change, head))):
            raise ThinkbackError(
                "this is not what was shown", next_actions=("go back, look at it again, and confirm that",)
            )
        with self._lock, warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # what is voided was told
            now = self._store.find(info.id)
            if now.head.hash != head:
                raise HeadMovedError(
                    f"somebody else wrote to {info.name} meanwhile, or this was done already",
                    next_actions=("look at the conversation as it is now, and begin again there",),
                )
            session = open_at(self._store, now.name, Destination())
            session.on("notice", lambda _: None)
            return self._done(session, change)

    def _done(self, session: Session, change: Change) -> str:
        given = change.given
        match change.act:
            case "annotate":
                session.annotate(change.target, **_annotation(given))
            case "edit":
                session.commit(given["text"], edit=change.target)
            case "branch":
                return session.branches.branch(given["name"], change.target).name
            case "redact":
                reason = given["reason"] or "redacted"
                self._store.care.redact(change.target, given["pattern"], session=session.name, reason=reason)
            case "title":
                set_title(session, given["text"])
        return change.target

    def _erasing(self, info: SessionInfo, change: Change, told: Outlook, commits: Sequence[Commit]) -> Outlook:
        found = self._store.care.redact(change.target, change.given["pattern"], session=info.name, dry_run=True)
        if not found.commits:
            raise NotFoundError(
                f"nothing in it matches {change.given['pattern']!r}", next_actions=("go back and change the pattern",)
            )
        target = next((commit for commit in commits if commit.hash == change.target), None)
        told = _after(told, commits, target) if target is not None else told
        return told._replace(gone=found.commits, sessions=found.sessions, files=found.files)

    def _sealed(self, *words: str) -> str:
        text = json.dumps(words).encode()
        return hmac.new(self._secret, text, hashlib.sha256).hexdigest()


def _annotation(given: Mapping[str, str]) -> dict[str, Any]:
    """What a form says of a commit, as ``Session.annotate`` takes it."""
    priority = given["priority"]
    return {
        "priority": None if priority in ("", "default") else priority,
        "default": priority == "default",
        "reason": given["reason"],
        "tags": _words(given["tags"]),
        "untag": _words(given["untag"]),
        "message": given["message"],
    }


def _effect(conversation: Conversation, change: Change) -> Effect | None:
    """What an edit or an annotation does to the next request; ``conversation`` has it from here on, the log has not."""
    try:
        before = _next(conversation)
    except (ThinkbackError, RecursionError):  # the page of the next request says what is wrong
        return None
    curator, history = Curator(conversation), conversation.history
    if change.act == "edit":
        drafts = curator.commit(change.given["text"], edit=change.target)
    else:
        drafts = curator.annotate(change.target, **_annotation(change.given))
    history.take(seal(Step("", drafts, now()), history.head))
    try:
        after = _next(conversation)
    except ThinkbackError as error:
        return Effect(refused=error.message)
    return Effect(_turned(before, after), _turned(after, before), bytes(before) == bytes(after))


def _next(conversation: Conversation) -> Plan:
    return plan_of(conversation, conversation.configure(), read_options({}))


def _turned(one: Plan, other: Plan) -> list[Turned]:
    """What goes back in ``one`` and not in ``other``."""
    theirs = {(each.block, each.what): each for each in other.decisions}
    found: list[Turned] = []
    for each in one.decisions:
        held = theirs.get((each.block, each.what))
        if each.block and _goes(each) and (held is None or not _goes(held)):
            found.append(Turned(each.block, each.what, held.reason if held is not None else ""))
    return found


def _goes(decision: Decision) -> bool:
    return decision.action not in WITHHELD


def _found(commits: Sequence[Commit], hash: str) -> Commit:
    found = next((commit for commit in commits if commit.hash == hash), None)
    if found is None:
        raise NotFoundError(
            "it is not on the branch that the session is on",
            next_actions=("`thinkback switch BRANCH` goes there; then it can be changed here",),
        )
    return found


def _after(told: Outlook, commits: Sequence[Commit], target: Commit) -> Outlook:
    """With what stands behind ``target``."""
    replies = sum(commit.kind == "response" and commit.response != target.response for commit in commits[target.seq :])
    return told._replace(sent_anew=any(commit.kind == "request" for commit in commits), replies=replies)


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode())
