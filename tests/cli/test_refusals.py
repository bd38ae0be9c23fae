"""What the command line says where it cannot do what was asked: the fact, the way on, and the exit code."""

from __future__ import annotations

import shutil
import tempfile
import tomllib
from pathlib import Path

import pytest

import thinkback
from tests.cli.command import KEY, PLACE
from tests.cli.conftest import Inside
from tests.privileges import unprivileged
from thinkback.model.blocks import Origin
from thinkback.model.commits import Failure, Response, TurnEnded, Usage
from thinkback.session.transcripts.wording import first_words
from thinkback_referee import Referee

RULES = '[[rule]]\nid = "a"\nendpoint = "deepseek"\nsource = "s"\nsince = "2026-01-01"\n'


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("settings.toml", "reasoning = [", "correct {file}"),
        ("settings.toml", b"\xff", "cannot be read: it is not UTF-8"),
        ("settings.toml", None, "cannot be read: "),
        ("rules.toml", "rule = [", "correct {file}"),
        ("rules.toml", RULES + 'colour = "red"\n', "correct {file}"),
        ("rules.toml", b"\xff", "cannot be read: it is not UTF-8"),
        ("rules.toml", None, "cannot be read: "),
    ],
)
def test_a_file_of_the_configuration_that_cannot_be_used_is_wrong_use_with_a_way_on(
    line: Inside, file: str, text: str | bytes | None, said: str
) -> None:
    """Exit code 2, the file, what is wrong with it, and what to do."""
    path = line.config / file
    if text is None:
        path.symlink_to("/proc/self/mem")  # a file that not even root reads
    else:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())

    done = line("settings", "get", "reasoning.effort")

    assert 2 == done.code
    assert f"thinkback: {path}" in done.err
    assert said.format(file=path) in done.err
    assert "\n  - " in done.err


def test_a_setting_that_cannot_be_written_is_shown_as_the_file_wants_it(line: Inside) -> None:
    """What is to be written by hand is TOML."""
    line.config.rmdir()
    line.config.write_text("not a directory")

    said = line("settings", "set", "reasoning.effort", "high").err

    assert 'under [reasoning] write: effort = "high"' in said
    assert {"effort": "high"} == tomllib.loads(said.partition("write: ")[2])


def test_a_log_that_may_not_be_read_is_told_as_such(line: Inside) -> None:
    """The trouble is reading, not writing."""
    place = Path(tempfile.mkdtemp(prefix="thinkback-unreadable-"))
    place.chmod(0o777)
    log = place / "log.db"
    thinkback.open(log).close()
    log.chmod(0)
    try:
        with unprivileged():
            done = line("log", "--db", str(log))
    finally:
        shutil.rmtree(place)

    assert 7 == done.code
    assert f"the log {log} may not be read (Permission denied)" in done.err
    assert "give this user read permission" in done.err


def test_what_cannot_be_exported_to_is_named_as_it_was_given(line: Inside) -> None:
    """The name of the file that is written first does not appear."""
    with thinkback.open("log.db") as store:
        store.session("talk", endpoint="deepseek", model="m").commit("Hello.")

    done = line("export", "nodir/x.md", "--db", "log.db")

    assert 2 == done.code
    assert "thinkback: nodir/x.md cannot be written: No such file or directory" in done.err
    assert ".x.md" not in done.err
    assert "\n  - " in done.err


def test_words_that_are_no_time_and_files_that_are_there_are_wrong_use(line: Inside) -> None:
    """Both are for the person to correct, and neither means that the log is damaged."""
    thinkback.open("log.db").close()
    Path("copy.db").touch()

    assert 2 == line("search", "sky", "--since", "garbage", "--db", "log.db").code
    assert 2 == line("backup", "copy.db", "--db", "log.db").code


def test_a_body_that_is_no_response_fails(line: Inside) -> None:
    """What was read is still printed; the exit code says that it was nothing of the dialect."""
    Path("garbage").write_text("hello")

    assert 3 == line("decode", "openai-chat", "garbage").code
    assert "malformed" == line("decode", "openai-chat", "garbage", "--json").json["error"]["type"]


def test_a_chat_that_has_nothing_to_go_on_with_makes_no_log(line: Inside) -> None:
    """Neither the last session nor a log of that name is made by asking for it."""
    done = line("chat", "--continue", "--db", "none.db")

    assert 2 == done.code
    assert "there is no log at none.db" in done.err
    assert not Path("none.db").exists()


def test_an_address_that_does_not_speak_tls_is_not_tried_again(
    line: Inside, referee: Referee, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``https://`` before the port of a plain server: the error says so at once."""
    monkeypatch.setenv("DEEPSEEK_API_KEY", KEY)

    done = line("run", "Hi", *PLACE, referee.base_url("deepseek").replace("http:", "https:"), "--db", "log.db")

    assert 4 == done.code
    assert "retrying" not in done.err
    assert "does not speak TLS: is its address http://?" in done.err


def test_output_that_cannot_be_written_is_told_once(
    line: Inside, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A full disk behind standard output: an error, and nothing more when the process ends."""
    with open("/dev/full", "w") as full:
        monkeypatch.setattr("sys.stdout", full)
        done = line("endpoints")
        full.flush()  # what was not written is not tried again

    assert 1 == done.code
    assert "thinkback: standard output cannot be written: No space left on device\n" == done.err


def test_what_was_broken_off_is_listed_without_the_words_of_the_program() -> None:
    """A turn that was interrupted is so once, and what is not known is not said."""
    response = Response(Origin("deepseek", "deepseek", "deepseek-v4-pro"), error=Failure("interrupted"))

    assert "deepseek-v4-pro, interrupted" == first_words(response)
    assert "interrupted" == first_words(TurnEnded("interrupted", "interrupted"))
    assert "failed no key" == first_words(TurnEnded("failed", "no key"))
    assert "output 7" == first_words(Usage(output=7))


def test_a_configuration_that_lacks_something_is_not_called_right(line: Inside) -> None:
    """``--check`` says one thing: nothing is wrong, or it would not start."""
    Path("g.toml").write_text('[secrets]\ncurrent = "env:NOWHERE"\n')

    done = line("gateway", "--config", "g.toml", "--check")

    assert 2 == done.code
    assert "it would not start: secrets.current" in done.err
    assert "nothing is wrong" not in done.out
