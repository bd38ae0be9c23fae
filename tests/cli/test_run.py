"""``run``: what goes to which stream, what is sent, what is stored, and how it ends when things go wrong."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import socket
import sys

import click
import pytest

import thinkback
from tests.cli.chat.talks import asked
from tests.cli.command import KEY, PLACE, Command
from tests.cli.conftest import Inside
from thinkback.cli.chat.drawing.look import Look
from thinkback.cli.run import Screen, _prompt
from thinkback.model.commits import TurnEnded
from thinkback.model.deltas import ReasoningDelta, Status, TextDelta, ToolCallDelta
from thinkback_referee import BAD_KEY, Call, CutAfterBytes, HttpError, Referee, Stall, Step


def place(referee: Referee) -> tuple[str, ...]:
    """The options that lead to the referee's DeepSeek."""
    return (*PLACE, referee.base_url("deepseek"))


def test_the_answer_goes_to_standard_output_and_the_reasoning_to_standard_error(
    command: Command, referee: Referee
) -> None:
    """A pipe gets the answer alone; the reasoning is on the other stream, without colour."""
    referee.push(Step(reasoning="First I think.", text="Then I speak."))

    done = command("run", "Hi", *place(referee))

    assert (0, "Then I speak.\n") == (done.code, done.out)
    assert done.err.startswith("First I think.\n")
    assert "\x1b" not in done.err


def test_reasoning_that_only_a_closing_tag_ends_goes_to_standard_error(command: Command, referee: Referee) -> None:
    """A pipe gets the answer alone, and the other stream what the tag made reasoning, once; hidden, nothing."""
    referee.push(*[Step(text="I weigh it.</think>It is so.")] * 2)

    done = command("run", "Hi", *place(referee))
    command("settings", "set", "reasoning.includeInResponse", "false")
    hidden = command("run", "Hi", *place(referee))

    assert (0, "It is so.\n") == (done.code, done.out)
    assert done.err.startswith("I weigh it.\n")
    assert 1 == done.err.count("I weigh it.")
    assert ("It is so.\n", False) == (hidden.out, "weigh" in hidden.err)


@pytest.mark.parametrize(
    ("environment", "painted"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)],
    ids=["terminal", "NO_COLOR", "dumb"],
)
def test_reasoning_is_shaded_and_italic_where_that_is_welcome(
    command: Command, referee: Referee, environment: dict[str, str], painted: bool
) -> None:
    """On a terminal reasoning looks as in the chat, unless NO_COLOR or a dumb terminal forbids it."""
    referee.push(Step(reasoning="Thinking.", text="Speaking."))

    shown = command.on_terminal("run", "Hi", "--set", "display.reasoning=full", *place(referee), **environment)

    assert 0 == shown.code
    assert painted == ("\x1b[0;3;38;5;250;48;5;236m" in shown.out)
    assert painted == ("Thought for" in shown.out or "DeepThink" in shown.out)
    assert painted == ("\x1b" in shown.out)
    assert shown.out.index("Thinking.") < shown.out.index("Speaking.")


def test_a_thought_that_was_one_line_can_be_read_afterwards(command: Command, referee: Referee) -> None:
    """The note at the end names the command that shows it."""
    referee.push(Step(reasoning="Thinking aloud.", text="Speaking."))

    shown = command.on_terminal("run", "Hi", "--session", "s", *place(referee), COLUMNS="200", TERM="xterm").out

    assert re.search(r"`thinkback log [^`]*s` shows\s+the\s+reasoning", shown)
    assert "Thinking aloud." in command("log", "s").out


def test_a_terminal_obeys_nothing_the_model_says(command: Command, referee: Referee) -> None:
    """Escape sequences in reasoning and answer do not reach the terminal."""
    referee.push(Step(reasoning="\x1b]0;title\x07", text="\x1b[2Jgone"))

    assert "\x1b" not in command.on_terminal("run", "Hi", *place(referee), NO_COLOR="1").out


@pytest.mark.parametrize("said", ["settings", "reasoning.includeInResponse=false", "display.reasoning=hidden"])
def test_reasoning_that_is_not_to_be_shown_is_not(inside: Inside, referee: Referee, said: str) -> None:
    """A setting of the user or of the call silences the reasoning and nothing else."""
    options: tuple[str, ...] = ("--set", said)
    if said == "settings":
        inside("settings", "set", "reasoning.includeInResponse", "false")
        options = ()
    referee.push(Step(reasoning="First I think.", text="Then I speak."))

    done = inside("run", "Hi", *place(referee), *options, DEEPSEEK_API_KEY=KEY)

    assert "Then I speak.\n" == done.out
    assert "First I think." not in done.err


def test_thinking_is_one_line_in_a_pipe_where_that_was_chosen(inside: Inside, referee: Referee) -> None:
    """Nobody can unfold it there, so that it is whole unless somebody said otherwise; the chat does the same."""
    referee.push(*(Step(reasoning="First I think.", text="Then I speak.") for _ in range(4)))
    chosen = ("--set", "display.reasoning=collapsed")

    for command, stdin in ((("run", "Hi"), b""), (("chat",), b"Hi\n")):
        default = inside(*command, *place(referee), stdin=stdin)
        folded = inside(*command, *place(referee), *chosen, stdin=stdin)
        assert (True, False) == ("First I think." in default.err, "First I think." in folded.err)
        assert "(Thought for less than a second, ~4 tokens)" in folded.err
        assert default.out == folded.out


def test_json_holds_the_turn(command: Command, referee: Referee) -> None:
    """``--json`` prints one object with text, reasoning, usage, decisions and commits."""
    referee.push(Step(reasoning="First I think.", text="Then I speak."))

    done = command("run", "Hi", *place(referee), "--session", "s", "--json")

    assert ("s", "completed", "Then I speak.", "First I think.") == tuple(
        done.json[key] for key in ("session", "state", "text", "reasoning")
    )
    assert done.json["usage"]["reasoning"] > 0
    assert done.json["commits"]
    assert "" == done.err


def test_the_prompt_may_come_from_standard_input(command: Command, referee: Referee) -> None:
    """Without its last line end: ``-``, no prompt and a pipe, or a pipe or file behind the prompt."""
    for prompt, said in ((["-"], ""), ([], ""), (["Translate:"], "Translate:\n\n")):
        command("run", *prompt, *place(referee), stdin="Grüße\nan alle\n".encode())
        assert [{"role": "user", "content": f"{said}Grüße\nan alle"}] == referee.requests[-1].body["messages"]


def test_what_nobody_feeds_is_not_waited_for(inside: Inside, referee: Referee, monkeypatch: pytest.MonkeyPatch) -> None:
    """A socket, as agents leave one open behind a command of theirs, is not read; of a pipe without an end it is said
    that it is waited for.
    """
    ours, theirs = socket.socketpair()
    with ours, theirs, open(theirs.fileno(), closefd=False) as inside.stream:
        assert "waiting" not in inside("run", "Hi", *place(referee)).err
    reading, writing = os.pipe()

    class Late(io.TextIOWrapper):
        def read(self, size: int | None = -1) -> str:
            os.close(writing)
            return super().read(size)

    monkeypatch.setattr("thinkback.cli.run._SILENCE", 0)
    with Late(open(reading, "rb")) as inside.stream:
        waited = inside("run", "Ho", *place(referee))

    assert "waiting for standard input" in waited.err
    assert ["Hi", "Ho"] == asked(referee)


def test_a_standard_input_that_is_closed_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a shell closes it: the prompt goes alone, and without one it is wrong use."""
    monkeypatch.setattr("sys.stdin", None)
    assert "Hi" == _prompt("Hi")
    for nothing in ("", "-"):
        with pytest.raises(click.UsageError, match="empty"):
            _prompt(nothing)


def test_a_prompt_that_is_not_utf_8_is_refused_before_anything_is_stored(command: Command, referee: Referee) -> None:
    """It is said which byte of what cannot be read; no session is made for it."""
    done = command("run", "-", *place(referee), stdin="Grüße".encode("latin-1"))

    assert 2 == done.code
    assert "standard input is not UTF-8: byte 0xfc at character 3" in done.err
    assert [] == command("sessions", "--json").json


def test_what_was_thought_before_and_after_a_tool_stands_apart(command: Command, referee: Referee) -> None:
    """Reasoning of each response begins a line of its own, also in a file."""
    listing = Step(reasoning="I look.", tool_calls=[Call("list", {"path": "."})])
    referee.push(listing, Step(reasoning="I see.", text="Done."))

    done = command("run", "Hi", "--app", "coding", *place(referee))

    assert (0, "Done.\n") == (done.code, done.out)
    assert done.err.startswith("I look.\nI see.\n")


def test_the_thoughts_of_one_response_stand_apart(capsys: pytest.CaptureFixture[str]) -> None:
    """A blank line between two of them, also in a file, wherever their pieces end; those of the next one as above."""
    screen = Screen(Look())
    for text, index in (("First ", 0), ("thought.", 0), ("", 2), ("Second", 2), (" one.", 2)):
        screen.show(ReasoningDelta(text, index, "r1"))
    screen.show(Status("sending"))
    screen.show(ReasoningDelta("Next.", 0, "r2"))
    screen.end()

    assert "First thought.\n\nSecond one.\nNext.\n" == capsys.readouterr().err


def test_on_a_terminal_calls_are_lines(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """As in the chat, beside the answer; elsewhere there are none."""
    turn = (
        TextDelta("I read it.", 0),
        ToolCallDelta(1, "c1", "read", '{"path": "prim'),
        ToolCallDelta(1, arguments='es.py"}'),
        Status("tool_started", "read", call="c1"),
        Status("tool_finished", "read", call="c1", result="one\ntwo"),
        TextDelta("These are four primes.", 0),
    )

    def shown() -> tuple[str, str]:
        screen = Screen(Look(mode="hidden"))
        for delta in turn:
            screen.show(delta)
        screen.end()
        return capsys.readouterr()

    assert ("", "") == shown()
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert ("I read it.\nThese are four primes.\n", "✓ read primes.py · 2 lines\n") == shown()


def test_a_denied_turn_says_what_would_let_it_run_and_fails(command: Command, referee: Referee) -> None:
    """A script can tell that nothing was done, and a person what to do."""
    referee.push(Step(text="I write.", tool_calls=[Call("shell", {"command": "touch /nowhere/x"})]))

    done = command("run", "Hi", "--app", "coding", *place(referee))

    assert (1, "I write.\n") == (done.code, done.out)
    assert "the turn ended: denied: shell was denied" in done.err
    assert "--set permissions.mode=auto" in done.err
    assert "run by programs" not in done.err


def test_a_session_goes_on_where_it_was(command: Command, referee: Referee) -> None:
    """A named session sends its history and remembers endpoint, model and address."""
    command("run", "One", *place(referee), "--session", "s", "--system", "Be brief.")

    done = command("run", "Two", "--session", "s")

    messages = json.loads(referee.requests[-1].raw)["messages"]
    assert 0 == done.code
    assert ["system", "user", "assistant", "user"] == [message["role"] for message in messages]


def test_runs_without_a_name_do_not_mix(command: Command, referee: Referee) -> None:
    """Each run is a session of its own unless one is named."""
    command("run", "One", *place(referee))
    command("run", "Two", *place(referee))

    assert [{"role": "user", "content": "Two"}] == referee.requests[-1].body["messages"]
    assert 2 == len(command("sessions", "--json").json)


def test_settings_and_parameters_reach_the_request(command: Command, referee: Referee) -> None:
    """``--set`` is mapped by the rule, ``--param`` nests at dots and reads JSON, ``--no-stream`` asks for no stream."""
    options = ("--set", "reasoning.effort=high", "--param", "a.b=1", "--param", "a.c=x y", "--param", 'd=["e"]')

    done = command("run", "Hi", *place(referee), *options, "--no-stream")

    body = referee.requests[-1].body
    assert 0 == done.code
    assert ("high", {"b": 1, "c": "x y"}, ["e"]) == tuple(body.get(key) for key in ("reasoning_effort", "a", "d"))
    assert "stream" not in body


@pytest.mark.parametrize(
    "options",
    [
        ("--set", "reasoning.effort=silly"),
        ("--set", "reasoning.effort"),
        ("--param", "messages=[]"),
        ("--endpoint", "nowhere"),
        ("--key-env", "NOT_SET_ANYWHERE"),
    ],
    ids=" ".join,
)
def test_wrong_use_sends_and_stores_nothing(command: Command, referee: Referee, options: tuple[str, ...]) -> None:
    """A bad option ends with exit code 2 before anything is sent or a session is made."""
    done = command("run", "Hi", *place(referee), *options)

    assert 2 == done.code
    assert [] == referee.requests
    assert [] == command("sessions", "--json").json


@pytest.mark.parametrize("given", [(), ("--endpoint", "deepseek")], ids=["no endpoint", "no model"])
def test_a_request_that_leads_nowhere_is_wrong_use(command: Command, given: tuple[str, ...]) -> None:
    """Without an endpoint or a model the message says which option to give."""
    done = command("run", "Hi", *given)

    assert 2 == done.code
    assert "  - give --" in done.err


def test_a_key_may_come_from_a_variable_of_any_name(command: Command, referee: Referee) -> None:
    """``--key-env`` names the variable that holds the key."""
    done = command("run", "Hi", *place(referee), "--key-env", "MY_OWN", MY_OWN="anything", DEEPSEEK_API_KEY=BAD_KEY)

    assert 0 == done.code


# -- dry run ---------------------------------------------------------------------------------------------------------


def test_a_dry_run_prints_the_bytes_that_the_run_then_sends(talked: Command, referee: Referee) -> None:
    """The body of ``--dry-run`` is byte for byte what the same command without it sends."""
    line = ("run", "And in Rome?", "--session", "talk", "--system", "Be brief.", "--param", "a.b=1")

    dry = talked(*line, "--dry-run")
    talked(*line)

    assert 0 == dry.code
    assert referee.requests[-1].raw.decode() == dry.out.removesuffix("\n")
    assert "reasoning_content" in dry.out


def test_a_dry_run_needs_no_key_and_stores_nothing(command: Command) -> None:
    """No key is needed, and no log is made."""
    done = command(
        "run", "Hi", "--endpoint", "deepseek", "--model", "deepseek-v4-pro", "--dry-run", DEEPSEEK_API_KEY=""
    )

    assert 0 == done.code
    assert [{"role": "user", "content": "Hi"}] == done.json["messages"]
    assert "POST https://api.deepseek.com/chat/completions\n" == done.err
    assert not command.db.exists()


def test_a_dry_run_in_a_session_without_a_request_says_what_is_missing(command: Command) -> None:
    """The session is there; an endpoint is not."""
    with thinkback.open(command.db) as store:
        store.session("plan").commit("Made by hand.")
    done = command("run", "Hi", "--session", "plan", "--dry-run")

    assert 2 == done.code
    assert "no endpoint is set" in done.err
    assert "no session" not in done.err


def test_a_dry_run_tells_where_it_would_go_and_why(talked: Command) -> None:
    """With ``--json`` address, decisions and counts stand beside the body, and the key stands nowhere."""
    done = talked("run", "Hi", "--session", "talk", "--dry-run", "--json")

    assert {"url", "body", "decisions", "counts", "dropped"} == done.json.keys()
    assert {"field"} == {decision["action"] for decision in done.json["decisions"]}
    assert KEY not in done.out


# -- when it goes wrong ----------------------------------------------------------------------------------------------


def test_reasoning_without_an_answer_has_an_exit_code_of_its_own(command: Command, referee: Referee) -> None:
    """A model that only reasoned ends the run with exit code 6 and advice."""
    referee.push(Step(reasoning="I think and think", finish="length"))

    done = command("run", "Hi", *place(referee))

    assert (6, "") == (done.code, done.out)
    assert "gave no answer (it finished with 'length')" in done.err


@pytest.mark.parametrize(
    ("step", "outcome", "code", "line"),
    [
        (Step(text="Half an", finish="length"), "max_tokens", 0, "the answer is cut off: the output limit was reached"),
        (Step(finish="length"), "max_tokens", 6, "the answer is cut off: the output limit was reached"),
        (Step(refusal="I will not.", finish="stop"), "refused", 6, "the model refused to answer"),
        (Step(reasoning="Hm.", refusal="No.", finish="stop"), "refused", 6, "the model refused to answer"),
        (Step(text="Half an", finish="content_filter"), "safety", 6, "a safety filter stopped the answer"),
        (Step(text=" \n"), "empty", 6, "the answer has no text"),
    ],
    ids=["cut", "cut at once", "refused", "refused after a thought", "filtered", "white space"],
)
def test_an_answer_that_is_none_or_not_whole_is_told(
    command: Command, referee: Referee, step: Step, outcome: str, code: int, line: str
) -> None:
    """By a line with the provider's word, by exit code 6 where there is no answer, in JSON by a field."""
    referee.push(step, step)

    done = command("run", "Hi", *place(referee))
    data = command("run", "Hi", *place(referee), "--json")

    assert (code, code, outcome) == (done.code, data.code, data.json["outcome"])
    assert [1, 1] == [err.count(f"{line} (it finished with '") for err in (done.err, data.err)]
    assert "reasoned and gave" not in done.err


def test_a_thought_without_an_answer_is_continued_on_request(command: Command, referee: Referee) -> None:
    """``--ask-again`` asks for the answer, and says that it does; after three times exit code 6 stays."""
    referee.push(Step(reasoning="I think and think", finish="length"))
    referee.push(Step(reasoning="Ah.", text="Forty-two."))
    done = command("run", "Hi", "--ask-again", *place(referee))
    assert (0, "Forty-two.\n") == (done.code, done.out)
    assert "continuing: the output limit was reached while the model was still reasoning" in done.err
    for _ in range(4):
        referee.push(Step(reasoning="I think and think"))
    done = command("run", "Hi", "--ask-again", "--json", *place(referee))
    assert (6, "") == (done.code, done.json["text"])
    assert 6 == len(referee.requests)


def test_a_refusal_is_told_in_the_provider_s_words(command: Command, referee: Referee) -> None:
    """A provider's error ends with exit code 3 and its own text."""
    done = command("run", "Hi", *place(referee), DEEPSEEK_API_KEY=BAD_KEY)

    assert (3, "") == (done.code, done.out)
    assert "Authentication Fails (governor)" in done.err
    assert "the key came from the environment variable DEEPSEEK_API_KEY: set it to another key" in done.err


def test_a_refused_key_that_is_stored_names_the_file_and_the_command(command: Command, referee: Referee) -> None:
    """What the command then stores replaces it."""
    command("keys", "set", "deepseek", stdin=f"{BAD_KEY}\n".encode())
    done = command("run", "Hi", *place(referee), DEEPSEEK_API_KEY="")
    told = " ".join(done.err.split())
    assert (
        f"the key came from {command.config / 'keys.toml'}: `thinkback keys set DEEPSEEK_API_KEY` replaces it" in told
    )
    command("keys", "set", "DEEPSEEK_API_KEY", stdin=f"{KEY}\n".encode())
    assert 0 == command("run", "Hi", *place(referee), DEEPSEEK_API_KEY="").code


def test_a_dry_run_of_a_session_without_a_request_plans_its_first(command: Command, referee: Referee) -> None:
    """The session is there; nothing was asked in it yet."""
    with thinkback.open(command.db) as store:
        store.session("fresh").commit("Remember the milk.")
    done = command("run", "Hi", "--session", "fresh", "--dry-run", *place(referee))
    assert (0, True, True) == (done.code, "Remember the milk." in done.out, "Hi" in done.out)


@pytest.mark.parametrize("name", [(), ("--session", "try")], ids=["unnamed", "named"])
def test_a_model_that_nobody_serves_is_told_with_those_that_are_meant(
    inside: Inside, referee: Referee, name: tuple[str, ...]
) -> None:
    """Nothing is left of the attempt; in a session that was there it stays."""
    asked = (*place(referee), "-m", "deepseek-v4-por", *name)
    done = inside("run", "Hi", *asked, DEEPSEEK_API_KEY=KEY)

    assert (3, "") == (done.code, done.out)
    assert "deepseek knows no model 'deepseek-v4-por': did you mean deepseek-v4-pro or" in done.err
    assert "`thinkback models deepseek` lists the known ones" in done.err
    assert "base URL" not in done.err
    assert [] == inside("sessions", "--json").json

    if name:
        inside("run", "Hi", *place(referee), *name, DEEPSEEK_API_KEY=KEY)
        again = inside("run", "Hi", *asked, "--json", DEEPSEEK_API_KEY=KEY).json["error"]
        referee.push(Step(fault=HttpError(404, {"error": {"message": "The model `deepseek-v4-pro` does not exist"}})))
        known = inside("run", "Hi", *place(referee), *name, DEEPSEEK_API_KEY=KEY)
        assert ("provider", "deepseek-v4-pro") == (again["kind"], again["details"]["nearest"][0])
        assert ["try"] == [session["name"] for session in inside("sessions", "--json").json]
        assert "deepseek-v4-pro is known at deepseek: this key may be one that cannot use it" in known.err


def test_a_refusal_that_is_perhaps_about_the_model_keeps_the_session(inside: Inside, referee: Referee) -> None:
    """A 400 whose words only look like it, and do not name the model, may be about another field."""
    referee.push(Step(fault=HttpError(400, {"error": {"message": "model settings: temperature is invalid"}})))
    done = inside("run", "Hi", *place(referee), "--session", "new", DEEPSEEK_API_KEY=KEY)

    assert (3, ["new"]) == (done.code, [session["name"] for session in inside("sessions", "--json").json])


def test_a_server_on_this_machine_that_is_not_there_is_told_at_once(inside: Inside) -> None:
    """Once, with its address once and in words; nothing waits for it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    done = inside("run", "Hi", "--endpoint", "ollama", "--model", "m", "--base-url", f"{url}/v1")
    chat = inside("chat", "--endpoint", "ollama", "--model", "m", "--base-url", f"{url}/v1", stdin=b"Hi\n")

    said = (
        f"ollama at {url}: nothing listens there (connection refused)\n  - start Ollama there, or correct the base URL"
    )
    assert (4, f"thinkback: {said}\n") == (done.code, done.err)
    assert said in chat.out + chat.err
    assert 1 == (chat.out + chat.err).count(url)


def test_what_arrived_before_a_break_is_printed(command: Command, referee: Referee) -> None:
    """A connection that breaks off ends with exit code 4, after the part of the answer that came."""
    referee.push(Step(text="The first words of a long answer that is never finished", fault=CutAfterBytes(1500)))

    done = command("run", "Hi", *place(referee))

    assert 4 == done.code
    assert done.out.startswith("The first")
    assert "never finished" not in done.out


def test_required_reasoning_that_may_not_be_sent_stops_the_run(command: Command, referee: Referee) -> None:
    """Where the rule demands another model's reasoning nothing is sent, and the exit code is 5."""
    command.config.mkdir()
    (command.config / "rules.toml").write_text(
        '[[endpoint]]\nid = "strict"\nname = "Strict"\nbase_url = "http://127.0.0.1:9/v1"\nsource = "a test"\n'
        'auth = { scheme = "none" }\n'
        '[[rule]]\nid = "strict"\nendpoint = "strict"\nsource = "a test"\nsince = "2020-01-01"\n'
        'form = "field"\nopen_turn = "must"\nlater = "must"\n'
    )
    command("run", "One", *place(referee), "--session", "s")

    done = command("run", "Two", "--endpoint", "strict", "--model", "m", "--session", "s")

    assert 5 == done.code
    assert "strict demands the reasoning of block" in done.err


def test_a_damaged_log_has_an_exit_code_of_its_own(command: Command, referee: Referee) -> None:
    """A file that is no log ends with exit code 7, and nothing is sent."""
    command.db.write_bytes(b"not a database, by any means" * 100)

    assert 7 == command("run", "Hi", *place(referee)).code
    assert [] == referee.requests


def test_an_interrupt_keeps_what_arrived(command: Command, referee: Referee) -> None:
    """Ctrl-C ends with exit code 130; the log holds the part that came, marked interrupted."""
    referee.push(Step(reasoning="I begin to think and then say nothing", text="x", fault=Stall(60, after=6)))

    with command.start("run", "Hi", *place(referee), "--session", "s") as process:
        assert process.stderr is not None
        assert process.stderr.read(1)
        process.send_signal(signal.SIGINT)
        process.stderr.read()

    with thinkback.open(command.db) as store:
        ended = store.commits("s")[-1].value
    assert 130 == process.returncode
    assert isinstance(ended, TurnEnded)
    assert "interrupted" == ended.state


@pytest.mark.parametrize(
    ("endpoint", "model", "said"),
    [
        ("anthropic", "claude-sonnet-4-5", '"budget_tokens":1024'),
        ("openai", "gpt-5.4", '"effort":"low"'),
        ("mistral", "magistral-medium-latest", '"prompt_mode":"reasoning"'),
        ("openrouter", "anthropic/claude-sonnet-4.5", '"reasoning":{"enabled":true}'),
    ],
)
def test_a_dry_run_shows_that_a_model_is_asked_to_reason(
    command: Command, endpoint: str, model: str, said: str
) -> None:
    """What ``thinkback settings`` displays as built in is in the body."""
    done = command("run", "x", "--dry-run", "--endpoint", endpoint, "--model", model)

    assert (0, True) == (done.code, said in done.out)


def test_a_setting_that_cannot_be_sent_is_reported_once(command: Command, referee: Referee) -> None:
    """``run`` says so on standard error, and not again for the next question of the session."""
    line = ("--session", "s", "--set", "reasoning.maxTokens=500", *place(referee))

    first, second = command("run", "One?", *line), command("run", "Two?", *line)

    said = "reasoning.maxTokens = 500 is not sent: deepseek has no way to say it"
    assert (True, False) == (said in first.err, said in second.err)
