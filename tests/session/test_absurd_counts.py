"""No number of a provider stops a session, an import or an older log."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

import thinkback
from tests.session.chats import KEY
from tests.stores.samples import asked_step, put, user_step
from thinkback.model.commits import Step, Usage
from thinkback.session.exchange.histories import Wanted, run
from thinkback_referee import Referee
from thinkback_referee import Step as Answer

MOST = 1_000_000
ABSURD = (0, -1, 4611686018427387917, 9223372036854775808, 10**30, 1e30, "12")


@pytest.mark.parametrize("number", ABSURD)
def test_a_session_goes_on_after_an_absurd_count(tmp_path: Path, referee: Referee, number: object) -> None:
    """Turn after turn, in a file; no figure is absurd, and the log is clean."""
    with thinkback.open(tmp_path / "log.db") as store:
        url = referee.base_url("deepseek")
        session = store.session("s", endpoint="deepseek", model="deepseek-v4-pro", base_url=url, api_key=KEY)
        for turn in range(6):
            referee.push(Answer(text="Yes.", usage={"prompt_tokens": number, "completion_tokens": number}))
            reply = session.chat(f"Question {turn}?")
            assert "Yes." == reply.text
            assert reply.usage is not None
            assert (number != 0) == bool(reply.usage.invalid)
        use = session.usage.total().use
        assert (use.input or 0) + (use.output or 0) < MOST
        assert [] == store.fsck()
        (summary,) = store.log.summaries().values()
        assert 0 <= summary.tally.tokens < MOST


def test_an_import_goes_on_after_an_absurd_count(tmp_path: Path) -> None:
    """Three files, the second with a count of 2^63: all three are read."""
    for at, number in enumerate((5, 2**63, 5)):
        usage = {"prompt_tokens": number, "completion_tokens": 7}
        said = [{"role": "user", "content": f"Hi {at}"}, {"role": "assistant", "content": "Hello", "usage": usage}]
        (tmp_path / f"{at}.jsonl").write_text(json.dumps({"messages": said}) + "\n")
    with thinkback.open(tmp_path / "log.db") as store:
        run(store.log, Wanted("chat-jsonl", str(tmp_path)))
        assert 3 == len(store.sessions())
        assert [7, 12, 12] == sorted(each.tally.tokens for each in store.log.summaries().values())
        assert [] == store.fsck()


def test_a_log_with_an_absurd_count_opens_and_goes_on(tmp_path: Path) -> None:
    """The payload of an earlier version stays as it was stored; its number counts as not reported."""
    step = asked_step("a", "Hm.", "Yes.", 5)
    usage = next(draft.value for draft in step.drafts if isinstance(draft.value, Usage))
    msgspec.structs.force_setattr(usage, "input", 2**62 + 13)
    with thinkback.open(tmp_path / "log.db") as store:
        info = store.log.create_session("s", "s", 0)
        put(store.log, info.id, user_step("u"))
        put(store.log, info.id, step)
        put(store.log, info.id, Step("n", user_step("n").drafts, 6))
        stored = next(each for each in store.log.read(info.id) if each.kind == "provider_usage")
        assert b'"input":4611686018427387917' in stored.payload
        assert isinstance(stored.value, Usage)
        assert (None, ("input",)) == (stored.value.input, stored.value.invalid)
        assert [] == store.fsck()


def test_a_sum_that_cannot_be_is_counted_again(tmp_path: Path) -> None:
    """An earlier version added up what was reported; every append to that session would fail."""
    place = tmp_path / "log.db"
    with thinkback.open(place) as store:
        info = store.log.create_session("s", "s", 0)
        put(store.log, info.id, asked_step("a", "Hm.", "Yes.", 5))
    with closing(sqlite3.connect(place)) as db, db:
        db.execute("UPDATE summaries SET tokens = 9223372036854775712, reasoning = 4611686018427387904")
    with thinkback.open(place) as store:
        put(store.log, info.id, asked_step("b", "Hm.", "No.", 6))
        (summary,) = store.log.summaries().values()
        assert (60, 10) == (summary.tally.tokens, summary.tally.reasoning)
        assert [] == store.fsck()
