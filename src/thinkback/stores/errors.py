"""What every store refuses, with the same words: commits that do not fit, moved heads, unknown names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from thinkback.errors import CorruptLogError, ErasedSinceError, HeadMovedError, IdTakenError, NotFoundError, StoreError
from thinkback.log.protocol import AppendRequest
from thinkback.model import canonical
from thinkback.model.commits import Commit, Erased, Head, commit_hash, decode_payload

EMPTY = Head()
_HEX = frozenset("0123456789abcdef")


def check_sealed(commits: Sequence[Commit], expected: Head) -> None:
    """Raise ``StoreError`` unless ``commits`` stand one on the other, the first on ``expected``."""
    above, seq = expected.hash, expected.seq
    for commit in commits:
        seq += 1
        if commit.seq != seq or commit.parents[:1] != ((above,) if above else ()):
            raise StoreError(
                f"commit {commit.hash} (seq {commit.seq}) does not follow {above or 'the beginning'} (seq {seq - 1})",
                details={"commit": commit.hash, "seq": commit.seq, "head": above},
                next_actions=("seal the step on top of the head it is appended to",),
            )
        above = commit.hash


def check_entry(entry: AppendRequest) -> list[tuple[bytes, bytes, int]]:
    """(scope, digest, how far before the last commit its response begins) of each sighting.

    Raises ``StoreError`` for names that cannot be stored, and for a sighting of what is not in the step.
    """
    for what, text in (("session id", entry.session), ("session name", entry.name), ("branch name", entry.branch)):
        check_text(what, text)
    last = len(entry.commits) - 1
    begun = {commit.response: last - at for at, commit in enumerate(entry.commits) if commit.kind == "response"}
    foreign = next((seen for seen in entry.sightings if seen.response not in begun), None)
    if foreign is not None:
        raise StoreError(
            f"a sighting is of response {foreign.response!r}, which is not in step {entry.step}",
            details={"response": foreign.response, "step": entry.step},
            next_actions=("record a response together with what it is found by",),
        )
    return list(dict.fromkeys((seen.scope, seen.digest, begun[seen.response]) for seen in entry.sightings))


def check_tombstones(payloads: Mapping[str, bytes]) -> None:
    """Raise ``StoreError`` unless each payload is that of an ``Erased``."""
    for hash, payload in payloads.items():
        try:
            is_erased = isinstance(decode_payload(payload), Erased)
        except ValueError:
            is_erased = False
        if not is_erased:
            raise StoreError(
                f"the replacement of commit {hash[:16]} is not a tombstone",
                details={"hash": hash},
                next_actions=("give the bytes of an Erased payload",),
            )


def check_restored(commits: Iterable[Commit]) -> None:
    """Raise ``StoreError`` unless each payload is the one that the commit's hash is of, or a tombstone."""
    for commit in commits:
        fields = (commit.edit, commit.response, commit.index, commit.time)
        is_own = commit.digest == canonical.digest(commit.payload)
        if not isinstance(commit.value, Erased) and not (
            is_own and commit.hash == commit_hash(commit.parents, commit.kind, commit.digest, *fields)
        ):
            raise StoreError(
                f"what is put back of commit {commit.hash[:16]} is not what its hash is of",
                details={"hash": commit.hash},
                next_actions=("give the commit as it was exported",),
            )


def check_text(what: str, text: str) -> None:
    """Raise ``StoreError`` for text that has no UTF-8 form (a lone surrogate)."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise StoreError(
            f"the {what} {text!r} cannot be stored: it is not valid Unicode",
            next_actions=("use text without lone surrogates",),
        ) from None


def damaged(what: str, **details: object) -> CorruptLogError:
    """The error for stored bytes that cannot be what was written."""
    return CorruptLogError(
        f"the log is damaged: {what}",
        details=details,
        next_actions=("run `thinkback fsck` to see how far, then restore the log from a copy",),
    )


def head_moved(session: str, expected: Head, actual: Head) -> HeadMovedError:
    """The error of an append whose branch was moved by someone else."""
    return HeadMovedError(
        f"the head of session {session} is {actual.hash or 'empty'} (seq {actual.seq}), "
        f"not {expected.hash or 'empty'} (seq {expected.seq})",
        details={"session": session, "expected": expected.hash, "actual": actual.hash, "seq": actual.seq},
        next_actions=("read the session again and append on top of its new head",),
    )


def erased_since(session: str, expected: int, actual: int) -> ErasedSinceError:
    """The error of a step that was made before something was erased."""
    return ErasedSinceError(
        f"something was erased from the log since the step of session {session} was made",
        details={"session": session, "expected": expected, "actual": actual},
        next_actions=("leave out of the step what was erased, and append it again",),
    )


def leased(session: str, branch: str) -> HeadMovedError:
    """The error of a recorded step whose branch somebody has a turn under way on."""
    return HeadMovedError(
        f"a turn is under way on branch {branch} of session {session}",
        details={"session": session, "branch": branch},
        next_actions=("go on in a branch of its own",),
    )


def id_taken(id: str) -> IdTakenError:
    """The error for a new session under the id of another one."""
    return IdTakenError(
        f"the session id {id} is taken by a session of another name, or by a deleted one that other sessions build on",
        details={"session": id},
        next_actions=("make the session with a new id",),
    )


def name_taken(name: str) -> StoreError:
    """The error for a new session under the name of another one."""
    return StoreError(
        f"there is a session {name!r} already",
        details={"session": name},
        next_actions=("make the session with another name",),
    )


def no_session(session: str) -> NotFoundError:
    """The error for a session id that the store does not have."""
    return NotFoundError(
        f"there is no session {session!r}",
        details={"session": session},
        next_actions=("list the sessions, or create this one first",),
    )


def no_branch(name: str, session: str, names: Iterable[str]) -> NotFoundError:
    """The error for a branch that the session does not have."""
    return NotFoundError(
        f"the session has no branch {name!r}",
        details={"session": session, "branch": name},
        next_actions=(f"its branches are {', '.join(sorted(names))}",),
    )


def branch_taken(name: str, session: str) -> StoreError:
    """The error for a new branch under the name of another one."""
    return StoreError(
        f"the session has a branch {name!r} already",
        details={"session": session, "branch": name},
        next_actions=(f"take another name, or switch to that branch: `thinkback switch {name}`",),
    )


def current_branch(name: str, session: str) -> StoreError:
    """The error for deleting the branch that the session is opened on."""
    return StoreError(
        f"{name} is the current branch of the session",
        details={"session": session, "branch": name},
        next_actions=("switch to another one first",),
    )


def no_commit(hash: str, session: str) -> NotFoundError:
    """The error for a commit that no session of the family holds."""
    return NotFoundError(
        f"no commit {hash[:16]} in session {session} or in what it forked from",
        details={"session": session, "hash": hash},
        next_actions=("`thinkback log` lists the commits",),
    )


def on_branch(at: Head, branch: str) -> NotFoundError:
    """The error for a commit that does not stand on the branch it was said to stand on."""
    return NotFoundError(
        f"commit {at.hash[:16]} (seq {at.seq}) is not on branch {branch}",
        details={"hash": at.hash, "branch": branch},
        next_actions=("`thinkback log` lists the commits",),
    )


def whole_hash(text: str) -> bool:
    """Whether it is a hash as commits have it."""
    return len(text) == 64 and _HEX.issuperset(text)


def prefix_range(prefix: str) -> tuple[bytes, bytes]:
    """The lowest and the highest hash that begin with the hex ``prefix``."""
    text = prefix.lower()
    if not 0 < len(text) <= 64 or not _HEX.issuperset(text):
        raise NotFoundError(
            f"{prefix!r} is not a commit hash", next_actions=("give 1 to 64 of the hex digits of a commit's hash",)
        )
    return bytes.fromhex(text.ljust(64, "0")), bytes.fromhex(text.ljust(64, "f"))


def ambiguous(prefix: str, hashes: Sequence[str]) -> NotFoundError:
    """The error for a hash prefix that is not exactly one commit's."""
    if not hashes:
        return NotFoundError(
            f"no commit begins with {prefix}",
            details={"prefix": prefix},
            next_actions=("`thinkback log` lists the commits",),
        )
    shown = ", ".join(hash[:16] for hash in hashes[:5])
    return NotFoundError(
        f"several commits begin with {prefix}: {shown}{', ...' if len(hashes) > 5 else ''}",
        details={"prefix": prefix, "hashes": list(hashes)},
        next_actions=("give more digits",),
    )
