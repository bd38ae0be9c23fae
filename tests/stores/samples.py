"""Steps as turns make them, and the way to put them into a store."""

from __future__ import annotations

from collections.abc import Iterable

from thinkback.log.protocol import Store
from thinkback.log.seal import head_of, seal
from thinkback.model import canonical
from thinkback.model.blocks import Origin, Text, ThinkingBlock
from thinkback.model.commits import Commit, Draft, Head, Message, Request, Response, Step, TurnEnded, Usage, block_draft
from thinkback.stores.sqlite_file import LogFile
from thinkback.stores.sqlite_rows import SqliteDatabase
from thinkback.stores.store import LogStore

ORIGIN = Origin("openai-chat", "https://api.example.com/v1", "reasoner", account="org-1", account_known=True)


def user_step(id: str, text: str = "Why is the sky blue?", time: int = 1_000) -> Step:
    """A step of one user message."""
    return Step(id, (Draft("user", Message(text)),), time)


def response_step(id: str, thought: str = "Rayleigh. " * 90, text: str = "It scatters.", time: int = 2_000) -> Step:
    """A step of one whole response: header, reasoning, text and usage."""
    response = f"response of {id}"
    drafts = (
        Draft("response", Response(ORIGIN, id=f"chatcmpl-{id}", finish="stop", blocks=2), response),
        block_draft(ThinkingBlock(thought, source_field="reasoning_content"), response, 0),
        block_draft(Text(text), response, 1),
        Draft("provider_usage", Usage(10, 20, 5, wire='{"prompt_tokens":10}'), response),
    )
    return Step(id, drafts, time)


def asked_step(id: str, thought: str, text: str, time: int) -> Step:
    """A step of one whole response with the record of its request and the end of its turn."""
    step = response_step(id, thought, text, time)
    basis = f'{{"rule":"{len(text) % 3} é"}}'
    digest = canonical.digest(canonical.raw(basis))
    record = Request({"model": "m"}, {}, (), "{}", "", "", "", "", "", "", digest, 2, (1, digest), 7, basis)
    asked = Draft("request", record, f"response of {id}")
    return Step(id, (asked, *step.drafts, Draft("turn_ended", TurnEnded("completed"))), time)


def put(store: Store, session: str, step: Step) -> list[Commit]:
    """Seal ``step`` on top of the session's head, append it, and return its commits."""
    info = store.find_session(session)
    assert info is not None
    commits = seal(step, info.head)
    assert store.append(session, step.id, commits, info.head)
    return commits


def put_on(store: Store, session: str, branch: str, step: Step) -> list[Commit]:
    """Seal ``step`` on top of a branch's head, append it, and return its commits."""
    (head,) = [found.head for found in store.refs.list(session) if found.name == branch]
    commits = seal(step, head)
    assert store.append(session, step.id, commits, head, branch)
    return commits


def fill(store: Store, session: str, steps: Iterable[Step]) -> list[Commit]:
    """Append ``steps`` to the session, made if it is not there."""
    if store.find_session(session) is None:
        store.create_session(session, f"name of {session}", 1)
    return [commit for step in steps for commit in put(store, session, step)]


def chain(steps: Iterable[Step], head: Head | None = None) -> list[list[Commit]]:
    """``steps`` sealed one on top of the other."""
    sealed: list[list[Commit]] = []
    for step in steps:
        sealed.append(seal(step, head or Head()))
        head = head_of(sealed[-1])
    return sealed


def file_of(store: LogStore) -> LogFile:
    """The SQLite log under a store."""
    assert isinstance(store.database, SqliteDatabase)
    return store.database.file
