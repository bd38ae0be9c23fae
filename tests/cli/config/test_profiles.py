"""``profile``, and ``--profile`` of the commands that ask."""

from __future__ import annotations

import stat
from collections.abc import Iterator

import pytest

from tests.cli.command import KEY, Command
from thinkback_referee import HttpError, Referee, Step


@pytest.fixture
def work(command: Command, referee: Referee) -> Iterator[Command]:
    """The command with a profile ``work``."""
    saved = command(
        "profile", "save", "work", *place(referee, "deepseek", "deepseek-v4-pro"), "--set", "context.size=9"
    )
    assert (0, "") == (saved.code, saved.err)
    yield command
    assert [] == [exchange.verdict.reason for exchange in referee.requests if not exchange.verdict.ok]


def place(referee: Referee, host: str, model: str) -> tuple[str, ...]:
    """The options that lead to a persona."""
    return "--endpoint", host, "--model", model, "--base-url", referee.base_url(host)


def models(referee: Referee) -> list[object]:
    """The models that were asked."""
    return [exchange.body["model"] for exchange in referee.requests]


def test_a_profile_is_made_shown_listed_and_deleted(work: Command, referee: Referee) -> None:
    """Its file is private, and holds what was said and no more."""
    file = work.config / "profiles" / "work.toml"
    assert 0o600 == stat.S_IMODE(file.stat().st_mode)
    said: dict[str, object] = {"kind": "model", "endpoint": "deepseek", "model": "deepseek-v4-pro"}
    said |= {"base_url": referee.base_url("deepseek"), "context.size": 9}
    assert {"name": "work", **said} == work("profile", "show", "work", "--json").json
    assert [{"name": "work", "default": False}] == work("profile", "list", "--json").json
    assert "  work  deepseek deepseek-v4-pro; context.size=9\n" == work("profile", "list").out
    assert "context.size  9" in work("profile", "show", "work").out
    assert 0 == work("profile", "delete", "work").code
    assert "no profiles yet" in work("profile", "list").err
    assert (2, "") == work("profile", "delete", "work")[:2]


def test_run_goes_by_a_profile_and_its_session_keeps_it(work: Command, referee: Referee) -> None:
    """Named once for a session; the next run of it need say nothing."""
    assert 0 == work("run", "Hello", "--session", "s", "--profile", "work", "--set", "reasoning.effort=low").code
    edited = work.config / "profiles" / "work.toml"
    edited.write_text(edited.read_text().replace("deepseek-v4-pro", "deepseek-v4-flash"))
    assert 0 == work("run", "Hello again", "--session", "s").code
    assert ["deepseek-v4-pro", "deepseek-v4-flash"] == models(referee)
    assert 0 == work("why", "s", "--next").code
    assert 0 == work("doctor", "s", "--offline").code


def test_what_is_said_beside_a_profile_wins(work: Command, referee: Referee) -> None:
    """A model alone is another model of the profile's endpoint; another endpoint is another place."""
    assert 0 == work("run", "Hello", "--profile", "work", "--model", "deepseek-v4-flash").code
    elsewhere = place(referee, "kimi", "kimi-k2.6")
    assert 0 == work("run", "Hello", "--profile", "work", *elsewhere, MOONSHOT_API_KEY=KEY).code
    assert ["deepseek-v4-flash", "kimi-k2.6"] == models(referee)


def test_the_default_holds_where_nothing_is_said(work: Command, referee: Referee) -> None:
    """It begins new sessions; one that went elsewhere goes on there."""
    assert "none\n" == work("profile", "default").out
    made = work("profile", "default", "work")
    assert (0, True) == (made.code, made.out.startswith("Set the default to profile work in "))
    assert "work\n" == work("profile", "default").out
    assert "* work" in work("profile", "list").out
    assert 0 == work("run", "Hello").code
    assert 0 == work("run", "Hello", "--session", "s", *place(referee, "kimi", "kimi-k2.6"), MOONSHOT_API_KEY=KEY).code
    assert 0 == work("run", "Hello", "--session", "s", MOONSHOT_API_KEY=KEY).code
    assert ["deepseek-v4-pro", "kimi-k2.6", "kimi-k2.6"] == models(referee)
    assert (2, "") == work("profile", "delete", "work")[:2]
    gone = work("profile", "default", "--none")
    assert (0, True) == (gone.code, gone.out.startswith("Removed the default profile from "))
    assert "" == work("run", "Hello").out


def test_a_session_whose_profile_is_gone_is_not_lost(work: Command, referee: Referee) -> None:
    """Asking is refused with the way out, looking is not; it goes on by another profile, or by none."""
    work("run", "Hello", "--session", "s", "--profile", "work")
    assert 0 == work("profile", "delete", "work").code
    refused = work("run", "Hello", "--session", "s")
    assert (2, True) == (refused.code, "--profile default" in refused.err)
    assert 0 == work("log", "s").code
    used = work("usage", "s")
    assert (0, True, True) == (used.code, "deepseek-v4-pro" in used.out, "there is no profile work" in used.out)
    assert 0 == work("run", "Hello", "--session", "s", "--profile", "default").code
    assert 0 == work("run", "Hello", "--session", "s").code
    assert 3 == len(models(referee))


def test_a_session_is_saved_as_a_profile(work: Command, referee: Referee) -> None:
    """Where it goes and what it is set to, whatever the environment says of new ones."""
    work("run", "Hello", "--session", "s", *place(referee, "kimi", "kimi-k2.6"), MOONSHOT_API_KEY=KEY)
    assert 0 == work("profile", "save", "mine", "--session", "s", THINKBACK_MODEL="other", MOONSHOT_API_KEY=KEY).code
    shown = work("profile", "show", "mine", "--json").json
    assert ("kimi", "kimi-k2.6") == (shown["endpoint"], shown["model"])
    assert 2 == work("profile", "save", "mine", "--session", "s", "--model", "m").code


def test_a_dry_run_goes_by_a_profile(work: Command) -> None:
    """It shows the request of the profile, without a key and without storing anything."""
    shown = work("run", "Hello", "--profile", "work", "--dry-run", "--json", DEEPSEEK_API_KEY="").json
    assert "deepseek-v4-pro" == shown["body"]["model"]
    assert not work.db.exists()


def test_a_profile_of_targets_fails_over(work: Command, referee: Referee) -> None:
    """The note says where the request went instead."""
    work("profile", "save", "second", *place(referee, "kimi", "kimi-k2.6"))
    assert 0 == work("profile", "save", "both", "--target", "work", "--target", "second").code
    assert "both    failover: work, second" in work("profile", "list").out
    referee.push(Step(fault=HttpError(503, "busy")))
    done = work("run", "Hello", "--profile", "both", "--session", "s", MOONSHOT_API_KEY=KEY)
    assert (0, ["deepseek-v4-pro", "kimi-k2.6"]) == (done.code, models(referee))
    assert "failing over: second; HTTP 503" in done.err
    assert 0 == work("run", "Hello", "--session", "s", MOONSHOT_API_KEY=KEY).code
    assert "deepseek-v4-pro" == models(referee)[-1]


def test_a_target_without_a_key_is_passed_over_with_a_note(work: Command, referee: Referee) -> None:
    """The other one serves."""
    work("profile", "save", "second", *place(referee, "kimi", "kimi-k2.6"))
    work("profile", "save", "both", "--target", "second", "--target", "work", "--kind", "round-robin")
    done = work("run", "Hello", "--profile", "both", PYTHONWARNINGS="default")
    assert (0, ["deepseek-v4-pro"]) == (done.code, models(referee))
    assert 1 == done.err.count("note: the target second is passed over: kimi needs a key")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("run", "Hi", "--profile", "none"), "there is no profile none"),
        (("run", "Hi", "--profile", "../work"), "cannot be the name of a profile"),
        (("profile", "save", "../work", "--model", "m"), "cannot be the name of a profile"),
        (("profile", "save", "work", "--key-env", "sk-very-secret"), "not the key itself"),
        (("profile", "save", "work", "--set", "reasoning.effort=huge"), "allowed: none, minimal"),
        (("profile", "save", "both", "--target", "work", "--model", "m"), "from its targets"),
        (("profile", "save", "work", "--endpoint", "nowhere"), "nowhere"),
        (("profile", "save", "work", "--base-url", "https://me:sk-very-secret@h.example"), "user name or password"),
        (("profile", "save", "both", "--target", "work", "--target", "nowhere"), "there is no profile nowhere"),
        (("profile", "default", "none"), "there is no profile none"),
        (("profile", "default", "work", "--none"), "--none takes no NAMES"),
        (("profile", "show", "none"), "profiles are: work"),
    ],
)
def test_a_mistake_is_told_and_changes_nothing(work: Command, arguments: tuple[str, ...], told: str) -> None:
    """No traceback, no key, no file, no session."""
    before = (work.config / "profiles" / "work.toml").read_text()
    done = work(*arguments)
    assert 2 == done.code
    assert told in done.err
    assert "sk-very-secret" not in done.err
    assert before == (work.config / "profiles" / "work.toml").read_text()
    assert ["profiles"] == [path.name for path in work.config.iterdir()]
    assert work("sessions", "--json").code == 2 or [] == work("sessions", "--json").json


def test_a_broken_profile_is_listed_as_such(work: Command) -> None:
    """The list shows what is wrong with a file, and the others."""
    (work.config / "profiles" / "bad.toml").write_text("model = 5\n")
    out = work("profile", "list").out
    assert "bad.toml: model: it must be text" in out
    assert "deepseek-v4-pro" in out
