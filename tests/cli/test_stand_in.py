"""``--endpoint referee``: a stand-in of the command's own, which says that it is one and is gone with the command."""

from __future__ import annotations

import signal
import socket
import subprocess
from urllib.parse import urlsplit

import pytest

import thinkback
from tests.cli.command import Command
from tests.cli.conftest import Inside
from thinkback.model.commits import Request


def ports(db: str) -> list[int]:
    """Where each request of the log went."""
    with thinkback.open(db) as store:
        found = [commit.value for info in store.sessions() for commit in store.commits(info.name)]
    return [urlsplit(one.target["base_url"]).port or 0 for one in found if isinstance(one, Request)]


def serves(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_a_run_shows_thinking_a_call_and_what_went_back(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a key; the next run, which a port of its own answers, goes on with what the first one thought."""
    monkeypatch.chdir(inside.place)
    del inside.environment["DEEPSEEK_API_KEY"]
    first = inside("run", "Hello?", "--session", "try", "--endpoint", "referee")
    second = inside("run", "And now?", "--session", "try", http_proxy="http://127.0.0.1:9")
    why = inside("why", "try", "--json").json

    assert (0, 0) == (first.code, second.code)
    assert (True, False) == tuple("a stand-in, not a model" in done.err for done in (first, second))
    assert "I take list. Note to self" in first.err
    assert "It is not a model" in first.out
    assert (1, 2) == (first.out.count("still known"), second.out.count("still known"))
    assert ["field"] * 3 == [decision["action"] for decision in why["decisions"]]
    assert not any(map(serves, ports(str(inside.db))))


def test_a_chat_may_be_tried_the_same_way(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any question leads to a call, and to something that ``/why`` tells."""
    monkeypatch.chdir(inside.place)
    done = inside("chat", "--endpoint", "referee", stdin=b"asdf\n/why\n")

    assert 0 == done.code
    assert "list . " in done.out
    assert "goes back in reasoning_content: the endpoint requires it" in done.out
    assert "(no public page known; row of 20" in " ".join(done.out.split())


def test_a_chat_that_runs_goes_there_and_comes_back(inside: Inside) -> None:
    """/endpoint starts one, with its only model; a session of an earlier one that is resumed is answered by it too."""
    inside("run", "Hello?", "--session", "try", "--endpoint", "referee")
    nowhere = ("--endpoint", "anthropic", "--model", "claude-opus-4-8", "--base-url", "http://127.0.0.1:9")
    lines = b"/endpoint referee\nHere?\n/resume try\nThere?\n/resume new\nHere again?\n"
    done = inside("chat", "--session", "new", *nowhere, stdin=lines)

    asked, replayed = 3, 2
    assert (0, asked + replayed) == (done.code, done.out.count("It is not a model"))
    assert 1 == done.err.count("a stand-in, not a model")
    assert 2 == len(set(ports(str(inside.db))))
    assert not any(map(serves, ports(str(inside.db))))


def test_an_address_that_is_given_is_asked_instead(inside: Inside) -> None:
    """None is started; what would be sent is known without one."""
    nowhere = ("--endpoint", "referee", "--base-url", "http://127.0.0.1:9/deepseek")

    assert 4 == inside("run", "Hi", *nowhere).code
    assert '"model":"deepseek-v4-pro"' in inside("run", "Hi", "--dry-run", "--endpoint", "referee").out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_of_it_whatever_ends_the_chat(command: Command, number: signal.Signals) -> None:
    """It serves while the chat is there, and ends with it."""
    with command.start("chat", "--endpoint", "referee", stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"Hi\n/why\n")
        process.stdin.flush()
        assert any(b"goes back" in line for line in process.stdout)
        (port,) = set(ports(str(command.db)))
        assert serves(port)
        process.send_signal(number)
        process.communicate()

    # between two lines a Ctrl-C ends what is typed, and the end of the input then ends the chat in good order
    assert number == signal.SIGINT or 0 != process.returncode
    assert not serves(port)
