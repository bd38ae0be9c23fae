"""Calls that a person is asked about: what is shown, and what the answers mean."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import thinkback
from tests.cli.chat.talks import messages
from tests.cli.chat.terminal import Terminal
from tests.cli.command import PLACE, Command
from thinkback.cli.chat.ahead import readable
from thinkback.cli.chat.approval import read
from thinkback.cli.chat.midturn import split
from thinkback.session.transcripts.call_text import lines, plain
from thinkback.turn.permissions import PermissionAnswer
from thinkback_referee import Call, Referee, Step

ENTER, CTRL_C = "\r", "\x03"
QUESTION = "[y]es, [n]o, [a]lways"


@contextmanager
def working_on(app: str, command: Command, referee: Referee, columns: int = 80) -> Iterator[Terminal]:
    """A chat with an app, whose workspace is ``work``."""
    workspace = command.place / "work"
    workspace.mkdir()
    line = command.quick_line("chat", "--app", app, "--session", "talk", *PLACE, referee.base_url("deepseek"))
    # a shell changes the directory: the tests' own stays
    started = ["/bin/sh", "-c", 'cd "$0" && exec "$@"', str(workspace), *line]
    with Terminal(started, command.environment, columns=columns, rows=40) as terminal:
        terminal.wait_for("permissions.mode")  # where it works, what it may do, and what changes that
        terminal.wait_for("deepseek-v4-pro")
        yield terminal


@pytest.fixture
def agent(command: Command, referee: Referee) -> Iterator[Terminal]:
    """A chat with the coding app."""
    with working_on("coding", command, referee) as terminal:
        yield terminal


@pytest.fixture
def researcher(command: Command, referee: Referee) -> Iterator[Terminal]:
    """A chat with the research app, which has sub-agents; reading is asked about."""
    with working_on("research", command, referee) as terminal:
        terminal.send(f"/set permissions.rules read=ask{ENTER}")
        back(terminal)
        referee.push(
            Step(tool_calls=[Call("task", {"prompt": "Read a.txt."})]),
            Step(tool_calls=[Call("read", {"path": "a.txt"})]),
        )
        yield terminal


def back(terminal: Terminal) -> None:
    """Wait for an empty prompt."""
    terminal.wait_until(lambda: [one for one in terminal.lines if one.startswith(">")][-1:] == [">"], "the prompt")


def decisions(command: Command) -> list[str]:
    """What the log says of the calls."""
    with thinkback.open(command.db, rules={}, settings={}) as store:
        return [str(commit.value) for commit in store.session("talk").log(kinds=("permission_decision",))]


def test_yes_runs_the_call_that_was_shown(agent: Terminal, command: Command, referee: Referee) -> None:
    """A new file as a diff; a word that is neither yes nor no is asked about again."""
    write = Call("write", {"path": "a.txt", "content": "one\ntwo\n"})
    referee.push(Step(reasoning="I write.", tool_calls=[write]), Step(text="Written."))
    agent.send(f"Go{ENTER}")
    agent.wait_for(QUESTION)
    assert "write writes" in agent.text
    assert "a.txt" in agent.text
    assert "+two" in agent.text
    assert not (command.place / "work" / "a.txt").exists()
    agent.send(f"perhaps{ENTER}")
    agent.wait_until(lambda: 2 == agent.text.count(QUESTION), "the question again")
    agent.send(f"y{ENTER}")
    agent.wait_for("Written.")

    assert "one\ntwo\n" == (command.place / "work" / "a.txt").read_text()
    assert 1 == len(decisions(command))


@pytest.mark.parametrize("columns", [40, 62, 70])
def test_the_question_is_readable_in_a_narrow_window(columns: int, command: Command, referee: Referee) -> None:
    """It stands above the line for the answer where there is no room beside it."""
    write = Call("write", {"path": "a.txt", "content": "one"})
    referee.push(Step(reasoning="I write.", tool_calls=[write]), Step(text="Written."))
    with working_on("coding", command, referee, columns) as terminal:
        terminal.send(f"Go{ENTER}")
        terminal.wait_for(QUESTION)
        assert "model if you like:" in terminal.text.replace("\n", " ")
        terminal.send(f"y and mind the gap{ENTER}")
        terminal.wait_for("Written.")

    assert "note='and mind the gap'" in decisions(command)[0]


def test_what_was_typed_before_a_question_is_no_answer(agent: Terminal, command: Command, referee: Referee) -> None:
    """Not even where it would be a yes: the person has not seen the call."""
    write = Call("write", {"path": "a.txt", "content": "x"})
    referee.push(Step(reasoning="I think. " * 20, tool_calls=[write], pace=0.01), Step(text="Written."))
    agent.send(f"Go{ENTER}y{ENTER}")
    agent.wait_for_written("Ctrl-C stops")
    agent.send(f"y{ENTER}")
    agent.wait_for(QUESTION)
    agent.send(f"perhaps{ENTER}")
    agent.wait_until(lambda: 2 == agent.text.count(QUESTION), "the question again")

    assert not (command.place / "work" / "a.txt").exists()
    agent.send(f"y{ENTER}")
    agent.wait_for("Written.")


def test_an_edit_is_shown_where_it_is_in_the_file(tmp_path: Path) -> None:
    """With three lines around it and its true line number; one that fits nowhere by its own words."""
    file = tmp_path / "a.txt"
    file.write_text("".join(f"line {number}\n" for number in range(1, 21)))
    edit = {"path": str(file), "old_string": "line 10\n", "new_string": "ten\n"}
    shown = [line for line, _ in lines("edit", json.dumps(edit))]
    assert "  @@ -7,7 +7,7 @@" == shown[1]
    assert ["   line 9", "  -line 10", "  +ten", "   line 11"] == shown[4:8]
    absent = [line for line, _ in lines("edit", json.dumps({**edit, "old_string": "nowhere"}))]
    assert "  -nowhere" in absent


def test_no_with_words_goes_on_with_them(agent: Terminal, command: Command, referee: Referee) -> None:
    """The other calls are not run either; the next request is accepted."""
    calls = [Call("shell", {"command": "touch one"}), Call("shell", {"command": "touch two"})]
    referee.push(Step(tool_calls=calls), Step(text="As you wish."))
    agent.send(f"Go{ENTER}")
    agent.wait_for(QUESTION)
    assert "\nshell runs\n  touch one\n" in agent.text
    agent.send(f"n leave it alone{ENTER}")
    agent.wait_for("As you wish.")
    back(agent)

    assert [] == os.listdir(command.place / "work")
    results = [str(one["content"]) for one in messages(referee) if one["role"] == "tool"]
    assert "leave it alone" in results[0]
    assert ["Go"] == [one["content"] for one in messages(referee) if one["role"] == "user"]
    assert (2, 1) == (len(results), str(messages(referee)).count("leave it alone"))
    assert [200, 200] == [exchange.status for exchange in referee.requests]


def test_always_is_not_asked_again(agent: Terminal, command: Command, referee: Referee) -> None:
    """The rule is the session's from then on, and for that file."""
    edit = [Call("write", {"path": "a.txt", "content": text}) for text in "xy"]
    referee.push(Step(tool_calls=edit[:1]), Step(tool_calls=edit[1:]), Step(text="Both."))
    agent.send(f"Go{ENTER}")
    agent.wait_for(QUESTION)
    agent.send(f"a{ENTER}")
    agent.wait_for("Both.")
    back(agent)
    agent.send(f"/set permissions.rules{ENTER}")

    agent.wait_for("permissions.rules = write(a.txt)=allow")
    assert 1 == agent.text.count(QUESTION)
    assert "y" == (command.place / "work" / "a.txt").read_text()


@pytest.mark.parametrize("typed", ["a\r", "yes, do it\ry\r", "y"])
def test_what_was_typed_before_the_question_is_no_answer(
    agent: Terminal, command: Command, referee: Referee, typed: str
) -> None:
    """It stands at the next prompt; whoever reads the question answers it."""
    touch = Call("shell", {"command": "touch one"})
    referee.push(Step(reasoning="I think. " * 10, tool_calls=[touch], pace=0.01))
    agent.send(f"Go{ENTER}")
    agent.wait_for_written("Ctrl-C stops")
    agent.send(typed)
    agent.wait_for(QUESTION)
    agent.send(f"n{ENTER}")
    agent.wait_for("denied")
    agent.wait_for(f"> {typed.partition(ENTER)[0]}")

    assert 1 == agent.text.count(QUESTION)
    assert [] == os.listdir(command.place / "work")


def test_an_answer_and_more_behind_it_answers_one_question(agent: Terminal, command: Command, referee: Referee) -> None:
    """The second question was not there when the second yes was typed."""
    touches = [Call("shell", {"command": f"touch {name}"}) for name in ("one", "two")]
    referee.push(Step(tool_calls=touches))
    agent.send(f"Go{ENTER}")
    agent.wait_for(QUESTION)
    agent.send(f"y{ENTER}y{ENTER}")
    agent.wait_until(lambda: 2 == agent.text.count(QUESTION), "the second question")
    agent.send(f"n{ENTER}")
    agent.wait_for("denied")

    assert [] == os.listdir(command.place / "work")


def test_what_is_left_out_of_a_long_call_can_be_shown(agent: Terminal, command: Command, referee: Referee) -> None:
    """Nothing runs that a person could not see before."""
    long = "\n".join([*(f"# {number}" for number in range(50)), "touch one"])
    referee.push(Step(tool_calls=[Call("shell", {"command": long})]))
    agent.send(f"Go{ENTER}")
    agent.wait_for("[s]how all")
    assert "touch one" not in agent.everything
    agent.send(f"s{ENTER}")
    agent.wait_for("  touch one")
    agent.wait_for(QUESTION)
    agent.send(f"n{ENTER}")
    agent.wait_for("denied")

    assert [] == os.listdir(command.place / "work")


def test_ctrl_c_at_the_question_ends_the_turn(agent: Terminal, command: Command, referee: Referee) -> None:
    """Nothing is run, and the chat goes on."""
    referee.push(Step(tool_calls=[Call("shell", {"command": "touch one"})]), Step(text="Fine."))
    agent.send(f"Go{ENTER}")
    agent.wait_for(QUESTION)
    agent.send(CTRL_C)
    agent.wait_for("interrupted")
    back(agent)
    agent.send(f"Never mind{ENTER}")
    agent.wait_for("Fine.")

    assert [] == os.listdir(command.place / "work")
    assert [200, 200] == [exchange.status for exchange in referee.requests]


def test_ctrl_c_while_a_tool_runs_ends_it(agent: Terminal, command: Command, referee: Referee) -> None:
    """Also after a question, and with impatience; the call is answered before the next request."""
    busy = Call("shell", {"command": "echo $$ > process; sleep 60"})
    referee.push(Step(tool_calls=[busy]), Step(text="Fine."))
    agent.send(f"Go{ENTER}")
    agent.wait_for(QUESTION)
    agent.send(f"y{ENTER}")
    process = command.place / "work" / "process"
    agent.wait_until(lambda: process.exists() and process.read_text().endswith("\n"), "the command")
    agent.send(CTRL_C + CTRL_C)
    agent.wait_for("interrupted")
    back(agent)
    agent.send(f"Never mind{ENTER}")
    agent.wait_for("Fine.")

    assert not Path(f"/proc/{process.read_text().strip()}").exists()
    assert [200, 200] == [exchange.status for exchange in referee.requests]


def test_a_command_typed_while_a_tool_runs_acts_at_the_next_step(
    agent: Terminal, command: Command, referee: Referee
) -> None:
    """What is none, and what follows it, waits for the prompt; a command that fails says so and ends nothing."""
    one, two = (command.place / "work" / name for name in ("one", "two"))
    os.mkfifo(one)
    os.mkfifo(two)
    referee.push(
        Step(tool_calls=[Call("shell", {"command": "cat one"})]),
        Step(tool_calls=[Call("shell", {"command": "cat two"})]),
        Step(text="Fine."),
        Step(text="You are welcome."),
    )
    agent.send(f"/set permissions.mode auto{ENTER}")
    back(agent)
    agent.send(f"Go{ENTER}")
    with one.open("w"):  # opens once the tool reads
        agent.send(f"/set reasoning.effort maxx\x7f{ENTER}/model deepseek-v4-flash{ENTER}/modle x{ENTER}")
    with two.open("w"):
        agent.send(f"/set reasoning.effort high{ENTER}Thanks{ENTER}")
    agent.wait_for("You are welcome.")

    pro, flash = "deepseek-v4-pro", "deepseek-v4-flash"
    sent = [(exchange.body["model"], exchange.body.get("reasoning_effort")) for exchange in referee.requests]
    assert [(pro, None), (flash, "max"), (flash, "max"), (flash, "high")] == sent
    assert "there is no command /modle" in agent.everything


@pytest.mark.parametrize(
    ("keys", "commands", "rest"),
    [
        ("/set a b\r/model x\nNo.\r/set c d\r", ["/set a b", "/model x"], "No.\r/set c d\r"),
        ("/set a b", [], "/set a b"),
        ("/profile\r/endpoint x \r", ["/profile", "/endpoint x"], ""),
        ("/sex\x7ft a bb\x08\r", ["/set a b"], ""),
        ("/settle\r", [], "/settle\r"),
        ("/set a\x1b[Db\r", [], "/set a\x1b[Db\r"),
        ("", [], ""),
    ],
)
def test_the_commands_that_typing_begins_with_are_told_apart(keys: str, commands: list[str], rest: str) -> None:
    """Whole lines without keys that only a prompt understands; all else is left as it was typed."""
    assert (commands, rest) == split(keys)


def test_a_chat_that_is_killed_while_a_tool_runs_resumes(agent: Terminal, command: Command, referee: Referee) -> None:
    """The call without a result is answered before the next request."""
    referee.push(Step(reasoning="I look.", tool_calls=[Call("shell", {"command": "touch begun; sleep 5"})]))
    agent.send(f"Go{ENTER}")
    agent.wait_for(QUESTION)
    agent.send(f"y{ENTER}")
    agent.wait_until(lambda: (command.place / "work" / "begun").exists(), "the command")
    agent.process.kill()
    agent.wait_for_end()

    referee.push(Step(text="Resumed."))
    done = command("chat", "--continue", stdin=b"Go on\n")

    assert "I look." in command("log", "--kind", "reasoning").out
    assert "Resumed." in done.out
    assert [200, 200] == [exchange.status for exchange in referee.requests]


def test_a_sub_agent_asks_too(researcher: Terminal, command: Command, referee: Referee) -> None:
    """With its name; the answer is the person's."""
    (command.place / "work" / "a.txt").write_text("contents")
    referee.push(Step(text="It says contents."), Step(text="All done."))
    researcher.send(f"Go{ENTER}")
    researcher.wait_for(QUESTION)
    assert "sub-agent" in researcher.text
    researcher.send(f"y{ENTER}")
    researcher.wait_for("All done.")

    assert "contents" in str(messages(referee, 2)[-1]["content"])


def test_ctrl_c_at_the_question_of_a_sub_agent_ends_the_whole_turn(
    researcher: Terminal, command: Command, referee: Referee
) -> None:
    """Nothing is run, and the next turn is accepted."""
    referee.push(Step(text="Fine."))
    researcher.send(f"Go{ENTER}")
    researcher.wait_for(QUESTION)
    researcher.send(CTRL_C)
    researcher.wait_for("interrupted")
    back(researcher)
    researcher.send(f"Never mind{ENTER}")
    researcher.wait_for("Fine.")

    assert {200} == {exchange.status for exchange in referee.requests}


def test_a_question_of_a_sub_agent_ends_with_the_turn(researcher: Terminal, command: Command, referee: Referee) -> None:
    """Whoever ends the turn in another way than by the keys of the question does not wait for its answer."""
    referee.push(Step(text="Fine."))
    researcher.send(f"Go{ENTER}")
    researcher.wait_for(QUESTION)
    researcher.process.send_signal(signal.SIGINT)
    researcher.wait_for("interrupted")
    back(researcher)
    researcher.send(f"Never mind{ENTER}")
    researcher.wait_for("Fine.")

    assert {200} == {exchange.status for exchange in referee.requests}


def test_nobody_is_asked_in_a_pipe(command: Command, referee: Referee) -> None:
    """What needs a person's word is denied."""
    referee.push(Step(tool_calls=[Call("shell", {"command": "touch one"})]))
    place = (*PLACE, referee.base_url("deepseek"))

    done = command("chat", "--app", "coding", *place, stdin=b"Go\n")

    assert "denied" in done.out + done.err
    assert 1 == done.code
    assert not Path("one").exists()


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("y", PermissionAnswer(True)),
        ("YES, go on", PermissionAnswer(True, note="go on")),
        ("a", PermissionAnswer(True, always=True)),
        ("always: but be quick", PermissionAnswer(True, always=True, note="but be quick")),
        ("n", PermissionAnswer(False)),
        ("no use the other file", PermissionAnswer(False, note="use the other file", goes_on=True)),
        ("", PermissionAnswer(False)),
        ("   ", PermissionAnswer(False)),
        ("always use tabs, please", None),
        ("a bug is in there", None),
        ("maybe", None),
        ("yesterday", None),
    ],
)
def test_only_a_clear_yes_is_one(line: str, answer: PermissionAnswer | None) -> None:
    """Anything else is no, or is asked about again."""
    assert answer == read(line)


def shown(name: str, arguments: str) -> str:
    """A call as it is shown."""
    return "\n".join(line for line, _ in lines(name, arguments))


def test_a_call_is_shown_as_what_it_does(tmp_path: Path) -> None:
    """Commands line by line, changes as a diff, files that are written against what is there, else by argument."""
    there = tmp_path / "there.txt"
    there.write_text("same\nold\n")
    edit = {"path": "a.txt", "old_string": "two", "new_string": "three"}
    write = {"path": str(there), "content": "same\nnew\n"}

    assert "  one\n  two" == shown("shell", json.dumps({"command": "one\ntwo"}))
    assert "  a.txt\n  @@ -1 +1 @@\n  -two\n  +three" == shown("edit", json.dumps(edit))
    assert f"  {there}\n  @@ -1,2 +1,2 @@\n   same\n  -old\n  +new" == shown("write", json.dumps(write))
    assert '  a: b\n    c\n  d: {"e":1}' == shown("other", '{"a": "b\\nc", "d": {"e": 1}}')
    assert "  not json" == shown("other", "not json")
    assert "  [1]" == shown("other", "[1]")
    assert "" == shown("other", "")


def test_nothing_of_a_call_is_left_unsaid(tmp_path: Path) -> None:
    """What stands beside a command or a change; a difference in letters that show nothing."""
    there = tmp_path / "there.sh"
    there.write_bytes(b"# harmless\x0crm a\r\n")
    edit = {"path": "a", "old_string": "# one\u2028rm a", "new_string": "# one\nrm a", "replace_all": True}

    assert "  ls\n  script: rm\n    a" == shown("mcp__x__run", json.dumps({"command": "ls", "script": "rm\na"}))
    assert "-# one\u2028rm a\n  +# one\n  +rm a\n  replace_all: true" in shown("edit", json.dumps(edit))
    written = {"path": str(there), "content": "# harmless\nrm a\n"}
    assert "-# harmless\x0crm a\r\n  +# harmless\n  +rm a" in shown("write", json.dumps(written))
    assert "a<U+200B>b<U+202E>c<U+000A><U+001B>[2J    d" == plain("a\u200bb\u202ec\n\x1b[2J\td")


def test_keys_that_are_no_letters_are_not_kept() -> None:
    """Of what was typed before a question, letters and lines stay."""
    typed = b"one\x1b[A\x1bOP\x1b[200~ two\x1b[201~\rthree\x1bx\x7f\r"

    assert "one two\nthree" == readable(typed + b"\x1b]11;rgb:0000/0000/0000\x1b\\")


def test_what_is_no_text_is_shown_as_new(tmp_path: Path) -> None:
    """A binary file, or one that cannot be read, is compared with nothing."""
    (tmp_path / "bytes").write_bytes(b"\xff\x00")

    for path in (tmp_path / "bytes", tmp_path, tmp_path / "missing"):
        assert "\n  +new" in shown("write", json.dumps({"path": str(path), "content": "new\n"}))
