"""No copy restores what was erased here: not under another session id, and not an export of the log itself."""

from __future__ import annotations

from pathlib import Path

import pytest

import thinkback
from tests.formats.samples import SAMPLES
from tests.session.exchange.test_copies import ALL, SEEDS, Desk, desk, everything, program_of
from tests.stores.samples import put, response_step, user_step
from thinkback.model.commits import Erased
from thinkback.session.store import SessionStore

TIMELESS = ("atif", "chat-jsonl", "llm")
"""Programs whose seeds have entries without a time."""


def deletion(store: SessionStore) -> None:
    """Delete every session, one by one."""
    for info in store.sessions():
        store.care.delete_session(info.name)


def copied(data: bytes) -> bytes:
    """A copy of a history under another session id."""
    return data.replace(b'"s1"', b'"s2"')


def told(store: SessionStore) -> set[tuple[str, str]]:
    """All that is said in the log, in whatever session."""
    return {(kind, words) for _, kind, words in everything(store)}


@pytest.mark.parametrize("erase", [deletion, lambda store: store.care.purge(before="2100-01-01")])
def test_a_copy_under_another_session_id_brings_nothing_back(erase: object) -> None:
    """Known by what is said in it; it is skipped, and with more at its end only that is new."""
    for each in desk("claude-code"):
        each.take(SAMPLES["claude-code"])
        erase(each.store)  # type: ignore[operator]
        before = told(each.store)
        (took,) = each.take(copied(SAMPLES["claude-code"]))
        assert ("it was erased here, and stays so", 0) == (took.skipped, took.commits)
        assert before == told(each.store)
        more = SAMPLES["claude-code"].replace(b'"s1"', b'"s3"') + (
            b'{"type":"user","uuid":"later","parentUuid":null,"sessionId":"s3","timestamp":"2026-11-22T03:00:00Z",'
            b'"message":{"role":"user","content":"And later?"}}\n'
        )
        each.take(more)
        assert before | {("user", "And later?")} == told(each.store)
        again = each.take(more)
        assert ([0], []) == ([took.commits for took in again], each.store.fsck())


def test_a_redacted_word_does_not_come_with_a_copy_under_another_session_id() -> None:
    """The commit that had it is a tombstone there; all else is taken in."""
    for each in desk("claude-code"):
        each.take(SAMPLES["claude-code"])
        (info,) = each.store.sessions()
        whole = told(each.store)
        question = each.store.commits(info.name)[0]
        assert question.kind == "user"
        words = question.value.text  # type: ignore[union-attr]
        each.store.care.redact(question.hash, words[:8])
        (took,) = each.take(copied(SAMPLES["claude-code"]))
        assert (True, 1) == (took.made, took.erased)
        left = {words for _, words in told(each.store)}
        assert words not in left
        assert whole - {("user", words)} <= told(each.store)
        assert [0] == [again.commits for again in each.take(copied(SAMPLES["claude-code"]))]


def played(store: SessionStore, name: str, file: Path) -> None:
    """A session of our own, and a complete export of it."""
    store.log.create_session(name, name, 1)
    put(store.log, name, user_step("u1", "What is secret here? " * 8))
    put(store.log, name, response_step("r1", "the secret is a lighthouse " * 9))
    store.export(str(file), complete=True)


def test_an_export_of_our_own_does_not_bring_back_what_was_deleted(tmp_path: Path) -> None:
    """Its session is skipped, under another id its words are tombstones; who deletes the memory takes that back."""
    for each in desk("claude-code"):
        file = tmp_path / "own.jsonl"
        played(each.store, "own", file)
        before = told(each.store)
        deletion(each.store)
        assert [] == each.store.sessions()
        assert ["it was erased here, and stays so"] == [one.skipped for one in each.store.import_(file).sessions]
        assert [] == each.store.sessions()
        renamed = tmp_path / "renamed.jsonl"
        with thinkback.open(":memory:") as other:
            played(other, "other", renamed)
        (done,) = each.store.import_(renamed).sessions
        assert 0 < done.erased
        assert set() == told(each.store)
        assert any(isinstance(commit.value, Erased) for commit in each.store.commits(done.name))
        assert [] == each.store.fsck()
        deletion(each.store)
        each.store.care.delete_session("erased-imports")
        each.store.import_(file)
        assert before == told(each.store)


def test_what_is_here_is_not_touched_by_what_was_erased_elsewhere() -> None:
    """A copy that is here with the same words goes on: an import of it adds what is new, and erases nothing."""
    for each in desk("claude-code"):
        take_both(each)
        first = next(info for info in each.store.sessions() if each.store.log.summaries()[info.id].about.sources)
        before = told(each.store)
        each.store.care.delete_session(first.name)
        assert before == told(each.store)
        assert [0, 0] == [took.commits for data in both() for took in each.take(data)]
        assert before == told(each.store)


def both() -> tuple[bytes, bytes]:
    """A history, and a copy under another session id."""
    return SAMPLES["claude-code"], copied(SAMPLES["claude-code"])


def take_both(one: Desk) -> None:
    """Import both."""
    for data in both():
        one.take(data)


@pytest.mark.parametrize("seed", ALL)
def test_of_no_program_a_copy_under_another_session_id_brings_anything_back(seed: str) -> None:
    """What was deleted is known in each format; but short words that have no time in it, which may be anybody's."""
    name, whole = program_of(seed), SEEDS[seed]
    for each in desk(name):
        ids = {took.source for took in each.take(whole)}
        other = whole
        for id in ids:
            other = other.replace(f'"{id}"'.encode(), f'"{id}-copy"'.encode())
        before = {words for words in told(each.store) if name not in TIMELESS or len(words[1]) > 100}
        deletion(each.store)
        for _ in range(2):
            each.take(other)
            assert set() == told(each.store) & before
        assert [] == each.store.fsck()
