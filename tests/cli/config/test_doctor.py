"""``doctor``: what the next request would need, said before it is done, and done only where it is asked for."""

from __future__ import annotations

from typing import Any

import pytest

import thinkback
from tests.cli.command import KEY, PLACE, Command
from tests.cli.conftest import ENCRYPTED, SIGNATURE, Inside
from thinkback_referee import BAD_KEY, Referee

ELSEWHERE = ("--offline", "--endpoint", "groq", "--model", "openai/gpt-oss-120b")


def commits(command: Command) -> int:
    """How many commits the last session has."""
    with thinkback.open(command.db) as store:
        return len(store.commits(store.sessions()[0].id))


def test_a_session_that_can_go_on_is_sound(talked: Command) -> None:
    """Nothing is wrong, nothing is written, and the exit code is 0."""
    before = commits(talked)

    done = talked("doctor")

    assert (0, before) == (done.code, commits(talked))
    assert "nothing is wrong" in done.out


@pytest.mark.parametrize(
    ("path", "key", "finding"),
    [
        ("/nowhere", KEY, "address: deepseek at {server} answered 404: nothing is served at this address"),
        ("/deepseek", BAD_KEY, "key: deepseek at {server} answered 401: the key is refused"),
        ("", KEY, "address: deepseek at {server}: "),
    ],
    ids=["path", "key", "nobody"],
)
def test_a_place_that_does_not_answer_is_found(
    talked: Command, inside: Inside, referee: Referee, path: str, key: str, finding: str
) -> None:
    """Its path, its key, its address; no model is asked. Offline nothing is sent."""
    server = referee.base_url("deepseek").removesuffix("/deepseek")
    asked = len(referee.requests)
    if not path:
        referee.close()
    line = ("doctor", *PLACE, server + path)
    done = inside(*line, DEEPSEEK_API_KEY=key)

    assert (1, asked) == (done.code, len([one for one in referee.requests if one.status == 200]))
    assert finding.format(server=server) in " ".join(done.out.split())
    assert "nothing is wrong" not in done.out
    assert 0 == inside(*line, "--offline").code


def test_what_would_be_done_is_said_and_not_done(opaque: Command) -> None:
    """``--dry-run`` names the blocks and the remedy, ends with 1 and writes nothing; no opaque value is shown."""
    before = commits(opaque)

    done = opaque("doctor", "opaque", "--dry-run", *ELSEWHERE)

    assert (1, before) == (done.code, commits(opaque))
    assert "would declare it void for this target" in done.out
    assert "nothing was changed" in done.out
    assert not any(value in done.out for value in (SIGNATURE, ENCRYPTED))


def test_what_is_mended_once_is_sound_for_that_target(opaque: Command) -> None:
    """A repair is written for the target, which is then sound, and only for that one."""
    first, second = opaque("doctor", *ELSEWHERE), opaque("doctor", *ELSEWHERE)

    assert (1, 0) == (first.code, second.code)
    assert "mended" in first.out
    with thinkback.open(opaque.db) as store:
        (repair,) = (c.value for c in store.commits(store.sessions()[0].id) if c.kind == "repair")
    assert ("block", "https://api.groq.com/openai/v1") == (
        getattr(repair, "stage", ""),
        getattr(repair, "endpoint", ""),
    )
    assert 1 == opaque("doctor", "--offline", "--endpoint", "deepseek", "--model", "deepseek-v4-pro", "--dry-run").code


def test_a_call_that_never_got_a_result_is_closed(command: Command) -> None:
    """A session that was left with an open call is ended as the next turn would end it."""
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    history: list[dict[str, Any]] = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
    ]
    with thinkback.open(command.db, rules={}, settings={}) as store:
        store.session("left", endpoint="groq", model="m", api_key="k").wire.adopt(history)

    done = command("doctor", "left", "--json", *ELSEWHERE)

    assert 1 == done.code
    assert [("call", "close", True)] == [(f["kind"], f["remedy"], f["wrong"]) for f in done.json["findings"]]
    assert (True, True, "groq") == tuple(done.json[key] for key in ("wrong", "mended", "endpoint"))
    with thinkback.open(command.db) as store:
        kinds = [commit.kind for commit in store.commits(store.sessions()[0].id)]
    assert ["tool_result", "turn_ended"] == kinds[-2:]
    assert 0 == command("doctor", *ELSEWHERE).code


def test_a_session_that_never_sent_anything_needs_a_place(command: Command) -> None:
    """Without a last request somebody must say where the next one goes."""
    with thinkback.open(command.db) as store:
        store.session("empty")

    assert 2 == command("doctor").code
    assert "give --endpoint" in command("doctor").err
