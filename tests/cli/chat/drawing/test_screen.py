"""What a turn looks like in a real terminal."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.chat.playing import Play
from tests.cli.chat.terminal import DARK, LIGHT, Rgb
from thinkback.model.deltas import ReasoningDelta, Reclassified, Status, TextDelta, ToolCallDelta

CODE = "```python\n" + "".join(f"value_{at} = {at}\n" for at in range(60)) + "```\n"


@pytest.fixture(autouse=True)
def _in_forks(warm: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Play, "runs", warm[:-1])


def brightness(colour: Rgb) -> float:
    """As the eye sees it."""
    return 0.2126 * colour[0] + 0.7152 * colour[1] + 0.0722 * colour[2]


@pytest.mark.parametrize("depth", ["truecolor", ""])
@pytest.mark.parametrize("background", [DARK, LIGHT, (0, 0, 0), (255, 255, 255), (0, 43, 54), (253, 246, 227)])
def test_thinking_is_italic_on_a_shade_that_follows_the_terminal(tmp_path: Path, background: Rgb, depth: str) -> None:
    """inline, in italics, lighter than a dark background and darker than a light one, row by row."""
    with Play(tmp_path, background=background, environment={"COLORTERM": depth}) as play:
        play.do("begin")
        play.think("A thought that takes more than one row of this terminal, and a second one.")
        play.do("finish", "")
        play.end()

        rows = [play.row_of("A thought"), play.row_of("second one")]
        assert rows[0] + 1 == rows[1]
        cells = [cell for row in rows for cell in play.cells(row)]
        assert all(cell.italic for cell in cells if cell.text.strip())
        shades = {cell.rgb for cell in cells}
        assert 1 == len(shades)
        is_lighter = brightness(shades.pop()) > brightness(background)
        assert (brightness(background) < 128) == is_lighter


@pytest.mark.parametrize(
    ("theme", "environment", "lighter"),
    [
        ("auto", {"COLORFGBG": "0;15"}, False),
        ("auto", {"COLORFGBG": "15;default;0"}, True),
        ("auto", {}, True),
        ("light", {"COLORFGBG": "15;0"}, False),
        ("dark", {"COLORFGBG": "0;15"}, True),
    ],
)
def test_a_terminal_that_does_not_answer_is_judged_by_what_is_known(
    tmp_path: Path, theme: str, environment: dict[str, str], lighter: bool
) -> None:
    """First the setting, then ``COLORFGBG``, then dark."""
    with Play(tmp_path, background=None, theme=theme, environment=environment) as play:
        play.do("thought", "A thought.", 12.0, 812)
        play.end()

        assert lighter == (brightness(play.cell("A thought").rgb) < 128)
        assert "Thought for ~12 s, 812 tokens" in play.text


def test_the_answer_of_the_terminal_is_not_taken_for_typing(tmp_path: Path) -> None:
    """What a person types while the terminal is asked is kept, without the answer around it."""
    with Play(tmp_path, background=None) as play:
        play.wait_until(lambda: b"\x1b]11;?" in play.received, "the question")
        play.send("hel\x1b]11;rgb:fafa/f4f4/eded\x1b\\")
        play.do("typed")
        play.do("thought", "A thought.", None, None)
        play.end()

        assert "typed: hel" == play.lines[0].removeprefix("hel^[]11;rgb:fafa/f4f4/eded^[\\")
        assert brightness(play.cell("A thought").rgb) > 128


def test_thinking_is_on_the_screen_from_its_first_letter_on(tmp_path: Path) -> None:
    """Nothing waits for a word or a line to be whole."""
    with Play(tmp_path) as play:
        play.do("begin")
        play.show(ReasoningDelta("Thi", 0))
        play.wait_for(" Thi")
        play.show(ReasoningDelta("nk\nA", 0))
        play.wait_for(" Think\n A")
        play.show(TextDelta("An", 1))
        play.wait_for("\n\nAn")


def test_an_answer_becomes_markdown_block_by_block(tmp_path: Path) -> None:
    """The block under way stands as it came; the closed one is laid out in its place."""
    with Play(tmp_path) as play:
        play.do("begin")
        play.say("A **bold** word")
        play.wait_for("A **bold** word")
        play.say(".\n\n```python\ndef f():")
        play.wait_for("```python\ndef f():")
        assert "A bold word.\n\n```python\ndef f():" == play.text
        assert play.cell("bold").bold
        play.say("\n    return 1\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nThe end")
        play.do("finish", "")
        play.end()

        assert "A bold word.\n\n  def f():\n      return 1\n\na  b\n────\n1  2\n\nThe end" == play.text
        assert "default" != play.cell("def").foreground
        assert "default" == play.cell("The end").background


def test_an_answer_is_the_same_however_it_is_cut(tmp_path: Path) -> None:
    """A letter at a time, or all of it at once."""
    answer = "# Title\nWords that take more than one row of the terminal.\n\n- one\n- two\n\n" + "1. x\n\n2. y\n\nEnd"
    seen = set()
    for size in (1, 3, 1000):
        place = tmp_path / str(size)
        place.mkdir()
        with Play(place, columns=30) as play:
            play.do("begin")
            play.say(answer, size)
            play.do("finish", "")
            play.end()
            seen.add(play.text)
    assert {
        "Title\nWords that take more than one\nrow of the terminal.\n\n • one\n • two\n\n 1. x\n\n 2. y\n\nEnd"
    } == seen


def test_code_that_is_longer_than_the_screen_is_coloured_all_the_same(tmp_path: Path) -> None:
    """It is put in its place while it still can be, and stands there once."""
    with Play(tmp_path, rows=20) as play:
        play.do("begin")
        play.say("Look:\n\n" + CODE + "\nDone", 20)
        play.do("finish", "")
        play.end()

        values = [line.strip() for line in play.everything.splitlines() if "value_" in line]
        assert [f"value_{at} = {at}" for at in range(60)] == values
        assert "```" not in play.everything
        assert play.everything.endswith("  value_59 = 59\n\nDone")


def test_a_block_that_has_left_the_screen_stays_as_it_was_written(tmp_path: Path) -> None:
    """What cannot be replaced is not written twice."""
    quote = "".join(f"> line *{at}*\n" for at in range(30))
    with Play(tmp_path, rows=12) as play:
        play.do("begin")
        play.say(quote + "\nThe *end*", 20)
        play.do("finish", "")
        play.end()

        assert quote + "\nThe end" == play.everything


def test_collapsed_thinking_counts_and_then_is_one_line(tmp_path: Path) -> None:
    """While it goes on: seconds and tokens in one line; at the end that line says how much it was."""
    with Play(tmp_path, mode="collapsed", endpoint="anthropic") as play:
        play.do("begin")
        play.think("x" * 400)
        play.do("clock", 3)
        play.wait_for("Thinking, 3 s, ~100 tokens")
        assert play.cell("Thinking").italic
        assert brightness(play.cell("Thinking").rgb) > brightness(DARK)
        play.do("clock", 12)
        play.wait_for("Thinking, 12 s, ~100 tokens")
        play.say("The answer.")
        play.do("finish", "")
        play.end()

        assert "Thought for 12 s, ~100 tokens\n\nThe answer." == play.text


def test_hidden_thinking_leaves_a_sign_of_work_and_no_trace(tmp_path: Path) -> None:
    """The model is at work; at the end nothing of it stands there."""
    with Play(tmp_path, mode="hidden") as play:
        play.do("begin")
        play.think("A secret thought.")
        play.do("clock", 5)
        play.wait_for("Working, 5 s")
        play.do("thought", "A secret of the past.", 1.0, 5)
        play.say("The answer.")
        play.do("finish", "")
        play.end()

        assert "The answer." == play.text
        assert b"secret" not in play.received


def test_the_look_is_read_at_each_turn(tmp_path: Path) -> None:
    """A setting that changes acts from the next turn on."""
    with Play(tmp_path) as play:
        play.do("begin")
        play.do("look", {"mode": "hidden"})
        play.think("First.")
        play.do("finish", "")
        play.do("begin")
        play.think("Second.")
        play.do("finish", "")
        play.end()

        assert "First." in play.text
        assert "Second." not in play.text


def test_waiting_shows_what_for(tmp_path: Path) -> None:
    """Until the first letter comes a line says that the model is at work, and for how long."""
    with Play(tmp_path) as play:
        play.do("begin")
        play.show(Status("sending", "some-model"))
        play.do("clock", 7)
        play.wait_for("Working: some-model, 7 s")
        play.show(TextDelta("Now.", 0))
        play.do("finish", "")
        play.end()

        assert "Now." == play.text


@pytest.mark.parametrize("mode", ["full", "collapsed", "hidden"])
def test_a_resize_in_the_middle_leaves_everything_readable(tmp_path: Path, mode: str) -> None:
    """Narrower, wider, lower: no word is lost or written twice, and what follows fits."""
    words = [f"word{at}" for at in range(40)]
    with Play(tmp_path, columns=70, rows=30, mode=mode) as play:
        play.do("begin")
        play.think(" ".join(words[:20]))
        play.wait_until(lambda: mode != "full" or "word19" in play.text, "the first half")
        play.resize(30, 30)
        play.think(" " + " ".join(words[20:]))
        play.say("Some *words* that stand here\nand ")
        play.wait_for("and")
        if mode == "full":
            # the terminal cuts what stood beyond its new edge; from there on nothing may be lost
            assert words[20:] == [word for word in play.text.split() if word in words[20:]]
            assert all(cell.background != "default" for cell in play.cells(play.row_of("word39")))
        play.resize(50, 20)
        play.say("others.\n\nThe *end* of it, which is longer than thirty columns.")
        play.do("finish", "")
        play.end()

        assert "The end of it, which is longer than thirty" in play.lines
        assert 1 == play.text.count("others.")


def test_text_that_turns_out_to_be_thinking_is_drawn_as_such(tmp_path: Path) -> None:
    """What stood there as an answer is taken back and stands on the shade."""
    thought = "I *think* about it.\n\nThen I think again."
    with Play(tmp_path) as play:
        play.do("begin")
        play.show(Status("retrying", "HTTP 500"))
        play.say(thought)
        play.wait_for("I think about it.\n\nThen I think again.")
        play.show(Reclassified(thought, 1))
        play.say("The answer.", index=2)
        play.do("finish", "")
        play.end()

        assert [
            "retrying: HTTP 500",
            "",
            " I *think* about it.",
            "",
            " Then I think again.",
            "Thought for less than a second, ~10 tokens",
            "",
            "The answer.",
        ] == play.text.split("\n")
        assert play.cell("Then").italic


def test_text_that_left_the_screen_and_was_thinking_is_marked(tmp_path: Path) -> None:
    """What cannot be taken back is said to have been thinking."""
    thought = "".join(f"line {at}\n\n" for at in range(20))
    with Play(tmp_path, rows=10) as play:
        play.do("begin")
        play.say(thought)
        play.show(Reclassified(thought, 1))
        play.say("The answer.", index=2)
        play.do("finish", "")
        play.end()

        assert play.text.endswith("line 19\n\n(what stands above was reasoning)\n\nThe answer.")


def test_calls_are_lines_with_their_end_and_their_time(tmp_path: Path) -> None:
    """Name, what for, what came of it and, where it was long, the time; while it runs a line counts."""
    with Play(tmp_path, columns=100) as play:
        play.do("begin")
        play.say("I look.")
        play.show(ToolCallDelta(1, "a", "weather", '{"city":'), ToolCallDelta(1, arguments=' "Oslo"}'))
        play.show(ToolCallDelta(2, "b", "read", '{"path": "' + "x" * 100 + '"}'))
        play.show(Status("tool_started", "weather", call="a"), Status("tool_started", "read", call="b"))
        play.do("clock", 2)
        play.wait_for("weather Oslo and 1 more, 2 s · Ctrl-C stops")
        play.show(Status("tool_finished", "weather", call="a", result="Rain\nand wind"))
        play.show(Status("tool_finished", "read", call="b", failed=True, result="no such file"))
        play.say("Rain.")
        play.do("finish", "")
        play.end()

        lines = play.text.split("\n")
        assert ["I look.", "", "✓ weather Oslo · 2 lines (2.0 s)"] == lines[:3]
        assert lines[3].startswith("✗ read xxx")
        assert "… · no such file (2.0 s)" in " ".join(play.text.split())
        assert play.text.endswith("\n\nRain.")


def test_what_happened_to_the_request_is_told(tmp_path: Path) -> None:
    """Retries, failovers, compaction and warnings are lines that stand back; errors are told with what to do."""
    with Play(tmp_path) as play:
        play.do("begin")
        for state in (
            "retrying",
            "failing_over",
            "repairing",
            "filling",
            "compacting",
            "dropping_thoughts",
            "budget",
            "branched",
        ):
            play.do("show", {"type": "status", "state": state, "detail": f"detail of {state}"})
        play.do("finish", "it broke")
        play.end()

        assert "failing over: detail of failing_over\n" in play.text
        assert 8 == play.text.count("detail of")
        assert "the next commits go to branch detail of branched" in " ".join(play.text.split())
        assert "it broke" in play.text


def test_questions_in_the_middle_of_a_turn_are_left_alone(tmp_path: Path) -> None:
    """While a person is asked nothing is drawn."""
    with Play(tmp_path) as play:
        play.do("begin")
        play.say("I would like to write.")
        play.do("aside", "Allow? [y/n] ")
        play.say("Done.")
        play.do("finish", "")
        play.end()

        assert "I would like to write.\nAllow? [y/n]\n\nDone." == play.text


@pytest.mark.parametrize(
    ("environment", "look"),
    [({"NO_COLOR": "1"}, {}), ({"TERM": "dumb"}, {}), ({}, {"theme": "plain"}), ({}, {"colours": False})],
    ids=["NO_COLOR", "dumb", "plain", "colours"],
)
@pytest.mark.parametrize("mode", ["full", "collapsed", "hidden"])
def test_without_colours_it_is_plain_text(
    tmp_path: Path, environment: dict[str, str], look: dict[str, Any], mode: str
) -> None:
    """No escape code at all, and still to be told apart."""
    with Play(tmp_path, environment=environment, mode=mode, **look) as play:
        play.do("begin")
        play.think("A thought.")
        play.do("clock", 3)
        play.say("The *answer*.\n\n- item")
        play.show(ToolCallDelta(1, "a", "weather", "{}"), Status("tool_started", "weather", call="a"))
        play.show(Status("tool_finished", "weather", call="a", result="a b"))
        play.do("finish", "")
        play.end()

        assert b"\x1b" not in play.received
        thought = {"full": "Thinking:\nA thought.\n", "collapsed": "", "hidden": ""}[mode]
        line = "" if mode == "hidden" else "(Thought for 3 s, ~2 tokens)\n\n"
        assert f"{thought}{line}The *answer*.\n\n- item\n\n✓ weather · a b" == play.text


HOSTILE = {
    "title": "\x1b]0;owned\x07",
    "clear": "\x1b[2J\x1b[H",
    "c1": "\x9b2J\x9d0;owned\x9c",
    "return": "harmless\rharmful",
    "backspace": "ab\x08\x08cd",
    "override": "\u202etxt.exe\u202c \u2066x\u2069",
    "tags": "\U000e0041\U000e0042",
    "reset": "\x1bc\x1b(0lqk",
    "link": "\x1b]8;;http://evil.example\x1b\\good\x1b]8;;\x1b\\",
    "clipboard": "\x1b]52;c;ZXZpbA==\x07",
    "cursor": "\x1b[6n\x1b[c\x05",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_terminal_obeys_nothing_that_it_is_told(tmp_path: Path, name: str) -> None:
    """In thinking, answers, code, links, names and results: nothing turns, moves, asks or renames anything."""
    evil = HOSTILE[name]
    with Play(tmp_path, rows=60) as play:
        play.do("begin")
        play.think(f"Think {evil} on", 1)
        play.say(f"Say {evil} on\n\n```{evil}\ncode {evil} on\n```\n\n", 1)
        play.say(f"[link {evil}](http://x/{evil})\n\n# T {evil}\n", 1000)
        play.show(ToolCallDelta(1, "a", f"call{evil}", f'{{"a": "{evil}"}}'))
        play.show(Status("tool_started", f"call{evil}", call="a"))
        play.show(Status("tool_finished", f"call{evil}", call="a", failed=True, result=f"result {evil}"))
        play.show(Status("retrying", f"because {evil}"))
        play.do("finish", f"error {evil}")
        play.do("message", "user", f"user {evil}")
        play.do("message", "assistant", f"assistant {evil}")
        play.do("note", f"note {evil}")
        play.do("thought", f"thought {evil}", 1.0, 1)
        play.end()

        assert "" == play.title
        assert not set("".join(play.text)) & set("\u202e\u202c\u2066\u2069\U000e0041\x9b\x9d\r\x08")
        assert b"\x1b]0" not in play.received
        assert b"\x1b]8" not in play.received
        assert b"\x1b]52" not in play.received
        assert b"\x1b[6n" not in play.received
        for word in ("Think", "Say", "code", "link", "call", "because", "error", "user", "assistant", "result", "note"):
            assert word in play.text
        if name == "return":
            assert "harmless\ufffdharmful" in play.text


def test_letters_of_all_kinds_keep_their_places(tmp_path: Path) -> None:
    """Wide letters, marks, emoji, text from right to left, tabs: rows break where they are full, none is torn."""
    samples = [
        "漢字かな交じり文" * 6,
        "e\u0301" * 70,
        "👩‍👩‍👧‍👦👍🏽🏳️‍🌈" * 6,
        "שלום עולם " * 10,
        "नमस्ते दुनिया " * 8,
        "a\tb\tc",
    ]
    with Play(tmp_path, columns=40, rows=60) as play:
        play.do("begin")
        for at, sample in enumerate(samples):
            play.think(sample, 3, index=at)
        play.say("\n\n".join(samples), 3)
        play.do("finish", "")
        play.end()

        assert "漢字かな交じり文漢字かな交じり文漢字" in play.text
        assert 2 == sum("a" in line and "b" in line and "c" in line for line in play.lines)
        letters = "".join(play.text.split())
        assert 2 * samples[0].count("漢") == letters.count("漢")
        assert 2 * 10 == letters.count("שלום")


def test_past_turns_look_as_they_did(tmp_path: Path) -> None:
    """Messages and thoughts of a session that is opened again, each told apart."""
    with Play(tmp_path, endpoint="openai") as play:
        play.do("message", "user", "What is it?\nTell me.")
        play.do("thought", "I wonder.", 61.0, 1812)
        play.do("message", "assistant", "It *is*.")
        play.do("message", "user", "And?")
        play.do("thought", "", None, 300)
        play.do("message", "assistant", "Well.")
        play.do("note", "a note")
        play.end()

        assert [
            "> What is it?",
            "  Tell me.",
            " I wonder.",
            "Reasoned for ~1 min 1 s, 1,812 tokens",
            "",
            "It is.",
            "",
            "> And?",
            "Reasoned, text withheld (300 tokens)",
            "",
            "Well.",
            "",
            "a note",
        ] == play.text.split("\n")


def test_words_are_those_of_the_language(tmp_path: Path) -> None:
    """The setting, else the environment's language."""
    with Play(tmp_path, environment={"LANG": "de_DE.UTF-8"}) as play:
        play.do("thought", "Hm.", 12.0, 812)
        play.end()
        assert "812 Tokens" in play.text


@pytest.mark.parametrize("columns", [40, 80, 120])
@pytest.mark.parametrize("environment", [{}, {"NO_COLOR": "1"}], ids=["colours", "NO_COLOR"])
def test_no_line_is_broken_inside_a_word(tmp_path: Path, columns: int, environment: dict[str, str]) -> None:
    """Own turns, thoughts, answers, calls, notes and errors: every row ends between words."""
    words = " ".join(f"reasonable{at}" for at in range(30))
    with Play(tmp_path, columns=columns, rows=60, environment=environment, mode="full") as play:
        play.do("message", "user", words)
        play.do("begin")
        play.think(words)
        play.say(words)
        play.show(Status("tool_finished", "look", failed=True, result=words))
        play.show(Status("compacting", words))
        play.do("finish", words)
        play.do("thought", words, 12.0, 18_000_000)
        play.do("message", "assistant", words)
        play.do("note", words)
        play.end()

        shown = {word for word in play.everything.split() if re.search("[a-z]", word) and not word.endswith("…")}
        assert not {word for word in shown if re.search("rea|son|able", word)} - set(words.split())
        assert "18,000,000 tokens" in " ".join(play.everything.split())
        assert play.everything.startswith("> reasonable0 ")
        assert "\n  reasonable" in play.everything


def test_a_long_message_is_shown_by_its_first_rows(tmp_path: Path) -> None:
    """It is in the log whole."""
    with Play(tmp_path) as play:
        play.do("message", "user", "\n".join(f"line {at}" for at in range(120)))
        play.end()
        assert ["> line 0", "  line 1", "  line 2", "  line 3", "  [116 more lines]"] == play.text.split("\n")


def test_the_row_below_a_text_under_way_says_how_to_stop(tmp_path: Path) -> None:
    """Below an answer that fills the screen too; the answer is as it would be without, and the row goes with it."""
    answer = "One **word** after another, and more of them. " * 12
    with Play(tmp_path, rows=8, columns=40) as play:
        play.do("begin")
        play.say(answer[:60])
        play.do("clock", 2)
        play.wait_until(lambda: "Working, 2 s · Ctrl-C stops" == play.lines[play.cursor[0] + 1], "the row below")
        play.say(answer[60:400])
        play.wait_until(lambda: "· Ctrl-C stops" in play.lines[7], "the row at the bottom")
        play.say(answer[400:])
        play.do("finish", "")
        play.end()

        assert "Ctrl-C" not in play.everything
        assert 24 == len(re.findall("One|more", play.everything))


def test_one_line_counts_and_ends_in_the_last_words_and_can_be_unfolded(tmp_path: Path) -> None:
    """Unfolded, the whole thought stands there and goes on; folded again, a line counts."""
    with Play(tmp_path, columns=80, mode="collapsed") as play:
        play.do("begin")
        play.think("First I look at the numbers, then at the letters. ")
        play.do("clock", 3)
        play.wait_for("Thinking, 3 s, ~12 tokens · Ctrl-C stops · … numbers, then at the letters.")
        assert "First" not in play.text
        play.do("fold")
        play.wait_for("First I look at the numbers, then at the letters.")
        play.think("And on.")
        play.wait_for("letters. And on.")
        play.do("fold")
        play.think(" Hidden words.")
        play.do("clock", 4)
        play.wait_for("~18 tokens · Ctrl-C stops")
        play.say("Done.")
        play.do("finish", "")
        play.end()

        assert "Thought for 4 s, ~18 tokens\n\nDone." in play.text
        assert "Hidden words" not in play.text
