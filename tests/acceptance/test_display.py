"""What the seeds say about the display and about profiles, through ``thinkback chat`` itself in a terminal."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator

import pytest

import thinkback
from tests.cli.chat.terminal import DARK, LIGHT, Rgb, Terminal
from tests.cli.command import PLACE, Command
from tests.cli.conftest import command as command
from thinkback.model.blocks import ThinkingBlock
from thinkback.settings import KEYS
from thinkback_referee import Referee, Step

THOUGHT, ANSWER = "I weigh it with care.", "It is so."
MODES = [pytest.param(DARK, id="dark"), pytest.param(LIGHT, id="light")]


@pytest.fixture
def background() -> Rgb:
    """What the terminal's background is, unless a test says otherwise."""
    return DARK


@pytest.fixture
def terminal(command: Command, referee: Referee, background: Rgb) -> Iterator[Terminal]:
    """A chat that shows thoughts whole, with a model that thinks the same each time."""
    assert 0 == command("settings", "set", "display.reasoning", "full").code
    referee.push(*[Step(reasoning=THOUGHT, text=ANSWER)] * 3)
    line = command.quick_line("chat", "--session", "talk", *PLACE, referee.base_url("deepseek"))
    environment = {**command.environment, "TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8"}
    with Terminal(line, environment, background=background) as opened:
        opened.wait_for("deepseek-v4-pro (deepseek)")
        yield opened


def say(terminal: Terminal, line: str, shown: str, times: int = 1) -> None:
    """Enter a line and wait until what follows stands there so many times."""
    terminal.send(f"{line}\r")
    terminal.wait_until(lambda: terminal.everything.count(shown) >= times, f"{shown!r}, {times} times")


def brightness(colour: Rgb) -> float:
    """As the eye sees it."""
    return 0.2126 * colour[0] + 0.7152 * colour[1] + 0.0722 * colour[2]


def test_req_think_007_1_inline_and_shaded(terminal: Terminal) -> None:
    """A thought stands in the conversation, between question and answer, on a background of its own."""
    say(terminal, "Is it so?", ANSWER)
    rows = [terminal.row_of(text) for text in ("Is it so?", THOUGHT, ANSWER)]
    assert sorted(rows) == rows
    shaded, plain = terminal.cell(THOUGHT), terminal.cell(ANSWER)
    assert ("default", True) == (plain.background, shaded.background != "default")


def test_req_think_007_2_italic(terminal: Terminal) -> None:
    """A thought is in italics, and the answer is not."""
    say(terminal, "Is it so?", ANSWER)
    assert (True, False) == (terminal.cell(THOUGHT).italic, terminal.cell(ANSWER).italic)


@pytest.mark.parametrize("background", MODES)
def test_req_think_007_3_the_shade_follows_the_theme(terminal: Terminal, background: Rgb) -> None:
    """Lighter than a dark background, darker than a light one."""
    say(terminal, "Is it so?", ANSWER)
    is_dark = brightness(background) < 128
    assert is_dark == (brightness(terminal.cell(THOUGHT).rgb) > brightness(background))


def test_req_think_007_4_hidden_from_display(terminal: Terminal, command: Command, referee: Referee) -> None:
    """With reasoning.includeInResponse=false no thought is on the screen; it is stored, and sent as before."""
    say(terminal, "/set reasoning.includeInResponse false", "includeInResponse = false")
    say(terminal, "Is it so?", ANSWER)
    say(terminal, "/quit", "")
    assert 0 == terminal.wait_for_end()
    assert THOUGHT not in terminal.everything
    with thinkback.open(command.db, rules={}, settings={}) as store:
        thoughts = [commit.value for commit in store.session("talk").log() if isinstance(commit.value, ThinkingBlock)]
    assert [THOUGHT] == [block.thought for block in thoughts]
    assert "includeInResponse" not in referee.requests[-1].raw.decode()


def test_br_003_display_changes_at_once_and_nothing_else(terminal: Terminal, referee: Referee) -> None:
    """Hidden for one turn and shown again for the next: what is sent is what it would have been."""
    say(terminal, "One?", ANSWER)
    say(terminal, "/set reasoning.includeInResponse false", "includeInResponse = false")
    say(terminal, "Two?", ANSWER, 2)
    say(terminal, "/set unset reasoning.includeInResponse", "includeInResponse = true")
    say(terminal, "Three?", ANSWER, 3)
    assert 2 == terminal.everything.count(THOUGHT)
    sent = [exchange.body for exchange in referee.requests]
    assert [200] * 3 == [exchange.status for exchange in referee.requests]
    assert sent[0].keys() == sent[1].keys() == sent[2].keys()


def test_ec_005_a_loaded_profile_shows_at_once(terminal: Terminal, command: Command, referee: Referee) -> None:
    """Loading a profile that hides reasoning and asks for more of it acts on the next turn, on screen and wire."""
    say(terminal, "One?", ANSWER)
    say(terminal, "/set reasoning.includeInResponse false", "includeInResponse = false")
    say(terminal, "/set reasoning.effort high", "effort = high")
    say(terminal, "/profile save quiet", "saved in")
    say(terminal, "/set unset reasoning.includeInResponse", "includeInResponse = true")
    say(terminal, "/set unset reasoning.effort", "effort = (unset)")
    say(terminal, "/profile load quiet", "effort high")
    say(terminal, "Two?", ANSWER, 2)
    assert 1 == terminal.everything.count(THOUGHT)
    assert [None, "high"] == [exchange.body.get("reasoning_effort") for exchange in referee.requests]


def test_req_think_006_6_every_setting_is_saved(terminal: Terminal, command: Command) -> None:
    """/profile save keeps each reasoning.* key that was set, and no other; /profile load brings each back."""
    values = {name: _other(name) for name in KEYS if name.startswith("reasoning.")}
    for name, value in values.items():
        say(terminal, f"/set {name} {value}", f"{name} = {value}")
    say(terminal, "/profile save all", "saved in")
    (saved,) = command.config.rglob("all.toml")
    kept = tomllib.loads(saved.read_text(encoding="utf-8"))
    assert values.keys() == {f"reasoning.{name}" for name in kept["reasoning"]}
    for name in values:
        say(terminal, f"/set unset {name}", f"{name} = ")
    say(terminal, "/profile load all", "/profile load all")
    say(terminal, "/set reasoning.keepLast", f"= {values['reasoning.keepLast']} (set by profile)")
    rows = {row["key"]: row for row in command("settings", "--session", "talk", "--json").json}
    loaded = {name: (str(rows[name]["value"]).lower(), rows[name]["layer"]) for name in values}
    assert {name: (value, "profile") for name, value in values.items()} == loaded


def _other(name: str) -> str:
    """A value of the key that is not its default."""
    key = KEYS[name]
    if key.type == "boolean":
        return str(not key.default).lower()
    if key.type == "integer":
        return str(key.smallest + 2000)
    if key.type == "field":
        return "thoughts"
    return next(word for word in key.choices if word not in (key.default, "none"))


def test_err_001_in_the_chat(terminal: Terminal) -> None:
    """The seed's own example: /set reasoning.format xml is refused with both words, and nothing changes."""
    say(terminal, "/set reasoning.format native", "reasoning.format = native")
    say(terminal, "/set reasoning.format xml", "field, native")
    say(terminal, "/set reasoning.format", "reasoning.format = native (set by session)", 2)
