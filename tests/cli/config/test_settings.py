"""``settings``: what is in force, who set it, and the user's file."""

from __future__ import annotations

import pytest

import thinkback
from tests.cli.command import Command
from tests.cli.conftest import Inside
from thinkback.settings import KEYS


def test_every_setting_is_listed_with_value_layer_and_help(command: Command) -> None:
    """The list shows each key with its value, the layer it comes from, and its sentence of help."""
    command("settings", "set", "reasoning.effort", "high")

    listed = {row["key"]: row for row in command("settings", "--json").json}
    shown = " ".join(command("settings", "--all").out.split())

    assert KEYS.keys() == listed.keys()
    assert ("high", "user") == (listed["reasoning.effort"]["value"], listed["reasoning.effort"]["layer"])
    assert (False, "built-in") == tuple(listed["reasoning.includeInContext"][key] for key in ("value", "layer"))
    assert [] == [key.name for key in KEYS.values() if key.help not in shown or key.name not in shown]


def test_what_is_set_and_what_the_endpoint_decides_is_listed_alone(inside: Inside) -> None:
    """What somebody set first; of a model that thinks without an effort, "none" is not said as if it were off."""
    inside("settings", "set", "reasoning.keepLast", "3")
    place = ("--endpoint", "anthropic", "--model", "claude-opus-5-5")
    shown = inside("settings", *place).out
    rows = [line.split() for line in shown.splitlines() if line.startswith(("reasoning", "session", "display"))]

    assert [["reasoning.keepLast", "3", "user"], ["reasoning.enabled", "true", "built-in"]] == rows[:2]
    assert ["reasoning.effort", "none", "said", "(it", "thinks)", "rule", "claude-opus-5-5"] == rows[2]
    assert ("reasoning.includeInContext", True) == (rows[3][0], len(rows) < 7)
    assert f"your settings file: {inside.config / 'settings.toml'}\n--all lists all {len(KEYS)} settings, with" in shown


def test_a_session_s_own_settings_are_listed(command: Command) -> None:
    """``--session`` adds the layer of that session."""
    with thinkback.open(command.db) as store:
        store.session("s").set("reasoning.effort", "low")

    assert "low\n" == command("settings", "--session", "s", "get", "reasoning.effort").out
    assert "session" == command("settings", "--session", "s", "get", "reasoning.effort", "--json").json["layer"]


def test_what_the_profile_of_a_session_says_is_listed(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """``--session`` adds what it follows too, below what it set itself."""
    monkeypatch.setenv("THINKBACK_CONFIG_DIR", str(command.config))
    profiles = command.config / "profiles"
    profiles.mkdir(parents=True)
    (profiles / "deep.toml").write_text('[reasoning]\neffort = "high"\nkeepLast = 2\n')
    with thinkback.open(command.db) as store:
        session = store.session("s")
        session.set("session.profile", "deep")
        session.set("reasoning.keepLast", 1)

    rows = {row["key"]: (row["value"], row["layer"]) for row in command("settings", "--session", "s", "--json").json}
    assert ("high", "profile") == rows["reasoning.effort"]
    assert (1, "session") == rows["reasoning.keepLast"]


def test_what_is_set_can_be_read_and_taken_back(command: Command) -> None:
    """``set`` writes the file, ``get`` reads it, ``unset`` takes the key out again."""
    command("settings", "set", "reasoning.keepLast", "3")
    command("settings", "set", "reasoning.effort", "high")

    assert "3\n" == command("settings", "get", "reasoning.keepLast").out
    assert '[reasoning]\nkeepLast = 3\neffort = "high"\n' == (command.config / "settings.toml").read_text()

    command("settings", "unset", "reasoning.keepLast")

    assert "(unset)\n" == command("settings", "get", "reasoning.keepLast").out
    assert '[reasoning]\neffort = "high"\n' == (command.config / "settings.toml").read_text()


def test_what_is_taken_out_is_told_and_what_was_not_there_too(inside: Inside) -> None:
    """One is a success, the other changes nothing."""
    file = inside.config / "settings.toml"
    inside("settings", "set", "reasoning.effort", "high")

    assert [
        f"removed reasoning.effort from {file}\n",
        f"{file} does not set reasoning.effort: nothing was changed\n",
    ] == [inside("settings", "unset", "reasoning.effort").out for _ in range(2)]


@pytest.mark.parametrize(
    "line", [("set", "reasoning.effort", "silly"), ("set", "nothing", "1"), ("get", "nothing"), ("unset", "nothing")]
)
def test_a_wrong_setting_changes_nothing(command: Command, line: tuple[str, ...]) -> None:
    """An unknown key or value is refused with what is allowed, and the file stays away."""
    done = command("settings", *line)

    assert 2 == done.code
    assert "reasoning.effort" in done.err
    assert not command.config.exists()


def test_comments_of_a_file_stay(command: Command) -> None:
    """Only what is set or unset changes in what a person wrote."""
    text = '# mine\n[reasoning]\n  effort="low"  # for now\n'
    command.config.mkdir()
    (command.config / "settings.toml").write_text(text)
    assert 0 == command("settings", "set", "reasoning.keepLast", "3").code
    assert f"{text}keepLast = 3\n" == (command.config / "settings.toml").read_text()
    assert 0 == command("settings", "unset", "reasoning.keepLast").code
    assert text == (command.config / "settings.toml").read_text()


def test_a_file_that_cannot_be_read_is_left_alone(command: Command) -> None:
    """The message says where it is wrong."""
    command.config.mkdir()
    (command.config / "settings.toml").write_text("[reasoning]\neffort = \n")
    done = command("settings", "set", "reasoning.keepLast", "3")
    assert (2, True) == (done.code, "settings.toml, line 2" in done.err)
    assert "[reasoning]\neffort = \n" == (command.config / "settings.toml").read_text()


BAD = '[reasoning]\neffort = "sk-live-0123456789abcdef"\nefort = "low"\nkeepLast = 2\n'


@pytest.mark.parametrize("line", [(), ("get", "reasoning.keepLast"), ("set", "reasoning.keepLast", "2")])
def test_commands_that_repair_a_file_run_on_a_bad_one(command: Command, line: tuple[str, ...]) -> None:
    """A bad entry is reported once, by its key, without a value that may be a secret; the others hold."""
    command.config.mkdir()
    (command.config / "settings.toml").write_text(BAD)

    done = command("settings", *line)

    assert (0, True) == (done.code, "2" in done.out)
    assert "sk-live" not in done.out + done.err
    if line[:1] != ("get",):
        assert "reasoning.effort: cannot be a text of 24 characters" in done.err
        assert "`thinkback settings unset reasoning.efort` removes it" in done.err


def test_a_bad_value_is_replaced_and_a_misspelt_key_taken_out(command: Command) -> None:
    """``settings set`` over a bad value works; ``settings unset`` takes out what is no setting."""
    command.config.mkdir()
    (command.config / "settings.toml").write_text(BAD)

    assert 0 == command("settings", "set", "reasoning.effort", "low").code
    done = command("settings", "unset", "reasoning.efort")

    assert (0, "") == (done.code, done.err)
    assert '[reasoning]\neffort = "low"\nkeepLast = 2\n' == (command.config / "settings.toml").read_text()


def test_a_request_is_refused_with_the_command_that_repairs(command: Command) -> None:
    """What the file means cannot be guessed: no request goes out, the key is named once, and the remedy is named."""
    command.config.mkdir()
    (command.config / "settings.toml").write_text(BAD)

    done = command("run", "Hi", "--dry-run", "--endpoint", "deepseek", "--model", "deepseek-v4-pro")

    assert 2 == done.code
    assert 1 == done.err.splitlines()[0].count("reasoning.effort")
    assert "thinkback settings unset reasoning.effort" in done.err
    assert "sk-live" not in done.err


def test_a_table_s_name_with_a_plain_value_is_repaired(command: Command) -> None:
    """``reasoning = 5`` is no group of settings; setting one of the group puts the table in its place."""
    command.config.mkdir()
    (command.config / "settings.toml").write_text("reasoning = 5\n")

    assert 0 == command("settings", "set", "reasoning.effort", "low").code
    assert '[reasoning]\neffort = "low"\n' == (command.config / "settings.toml").read_text().lstrip()


def test_a_setting_takes_the_place_of_its_other_name_in_the_file(command: Command) -> None:
    """Two names for one setting never stand in a file together."""
    command.config.mkdir()
    (command.config / "settings.toml").write_text("[reasoning]\nbudgetTokens = 1\n")

    done = command("settings", "set", "reasoning.budgetTokens", "2048")

    assert (0, True) == (done.code, done.out.startswith("reasoning.maxTokens = 2048"))
    assert "[reasoning]\nmaxTokens = 2048\n" == (command.config / "settings.toml").read_text()


def test_the_effect_at_an_endpoint_is_shown_by_scope(command: Command) -> None:
    """Where the rule row decides, the value is what happens, with who decides it; unset, what each would change."""
    kimi = ("settings", "--endpoint", "kimi", "--model", "kimi-k2-thinking")
    rows = {row["key"]: row for row in command(*kimi, "--json").json}
    row, rule = rows["reasoning.includeInContext"], "required by rule kimi-k2-thinking"
    assert (True, rule, "built-in") == (row["value"], row["by"], row["layer"])
    assert [("open turn", "yes", rule), ("finished turns", "yes", rule)] == [
        (scope["scope"], scope["effect"], scope["by"]) for scope in row["effect"]
    ]
    shown = " ".join(command(*kimi).out.split())
    assert f"open turn: yes, {rule}; finished turns: yes, {rule}" in shown
    assert "true\n" == command(*kimi, "get", "reasoning.includeInContext").out
    unset = " ".join(command("settings", "--endpoint", "stepfun", "--model", "step-3", "--all").out.split())
    assert "reasoning.includeInContext (unset) rule stepfun" in unset
    assert "true: finished turns: yes" in unset


def test_a_default_profile_that_is_gone_stops_no_listing(command: Command) -> None:
    """The command that takes it out of the file is named, and the other settings are listed."""
    command.config.mkdir()
    (command.config / "settings.toml").write_text('[session]\nprofile = "gone"\n[reasoning]\neffort = "low"\n')
    done = command("settings", "get", "reasoning.effort")
    assert (0, "low\n") == (done.code, done.out)
    assert "`thinkback settings unset session.profile`" in done.err
    assert 2 == command("settings", "--endpoint", "nowhere").code


def test_a_setting_in_place_of_a_command_is_told_what_to_type(command: Command) -> None:
    assert "`thinkback settings get reasoning.effort`" in command("settings", "reasoning.effort").err
    assert "`thinkback settings set reasoning.effort high`" in command("settings", "reasoning.effort", "high").err
    assert "No such command 'foo'" in command("settings", "foo").err
