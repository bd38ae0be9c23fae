"""Agents before the referee: what its model never does by itself, and a script that drives them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.command import Command
from tests.referee.talk import WEATHER, Body, Client, body, post, send, user
from thinkback_referee import KNOWN, Referee, code_word, read_script
from thinkback_referee.house import looks_up
from thinkback_referee.jsons import as_list, as_object
from thinkback_referee.persona import OfferedTool

PROMPT = 'Run "rm -rf build" in the shell.'
SCRIPT = """[
    {"calls": [{"tool": "bash|*shell*", "arguments": {"command": "ls", "cmd": "ls"}}]},
    {"reasoning": "Enough.", "text": "There: {notes}."}
]"""


def tool(name: str, description: str, *parameters: str) -> Body:
    """A function with texts as parameters, all required."""
    texts = {each: {"type": "string"} for each in parameters}
    schema = {"type": "object", "properties": texts, "required": [*parameters]}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


ACTING = [
    tool("Bash", "Executes a given command", "command"),
    tool("write_file", "Writes a file", "path", "content"),
    tool("WebFetch", "Fetches a page", "url", "prompt"),
    tool("Task", "Launch a new agent", "prompt"),
    tool("python", "", "code"),
]
UNKNOWN = [
    *("mv", "commit", "computer", "Skill", "handoff", "mcp__fs__put_object", "sh", "zsh", "powershell", "ipython"),
    *("js_repl", "node", "jupyter", "make_dir", "insert_line", "tell_weather", "frobnicate", "x", "工具", ""),
    # what begins with a harmless word
    *("get_and_run", "listAndDelete", "search.execute", "time_set", "find_replace", "getShell", "read__eval"),
    *("add_user", "count_down", "calculate", "readonly"),
]
HARMLESS = [
    *("get_weather", "weather", "get_time", "clock", "readFile", "read_log", "search", "search_docs", "list", "look"),
    *("lookup_order", "mcp__weather__forecast", "functions.get_weather", "WeatherForecast"),
]


def called(message: Body) -> list[tuple[str, object]]:
    """Names and arguments of the calls of a message."""
    functions = [as_object(as_object(call)["function"]) for call in as_list(message.get("tool_calls"))]
    return [(str(function["name"]), json.loads(str(function["arguments"]))) for function in functions]


@pytest.mark.parametrize("offered", ACTING)
def test_the_house_model_never_calls_what_acts(referee: Referee, offered: Body) -> None:
    """Words of a prompt do not become commands, files, addresses or agents, also where the call is forced."""
    name = as_object(offered["function"])["name"]
    forced = {"type": "function", "function": {"name": name}}
    for more in ({}, {"tool_choice": forced}):
        got = post(referee, "groq", body("openai/gpt-oss-120b", user(PROMPT), tools=[offered], **more))
        assert (200, []) == (got.status, called(got.message))


def one(name: str, *parameters: str, type: str = "string", description: str = "") -> OfferedTool:
    """A tool as the house model sees it."""
    return OfferedTool(name, description, {"properties": {each: {"type": type} for each in parameters}})


def test_only_what_clearly_looks_something_up_is_called(referee: Referee) -> None:
    """A tool that is not understood gets no words of the prompt, whatever its parameters are called."""
    offered = [tool("git", "", "args"), tool("evaluate", "", "expression")]
    offered += [tool(name, "", "text") for name in UNKNOWN if name.isidentifier() and name.isascii()]
    got = post(referee, "groq", body("openai/gpt-oss-120b", user(PROMPT), tools=offered))
    assert (200, []) == (got.status, called(got.message))

    acting = [one("git", "args"), one("evaluate", "expression"), one("get", "url"), one("search", "command")]
    assert [] == [name for name in UNKNOWN if looks_up(one(name, "text"))]
    assert [] == [each.name for each in acting if looks_up(each)]
    assert not looks_up(one("get_weather", "city", description="Executes the city"))
    assert HARMLESS == [name for name in HARMLESS if looks_up(one(name, "city"))]


@given(st.text(), st.text())
def test_words_of_acting_beat_every_name(before: str, after: str) -> None:
    """Wherever in a name the word stands, and whatever the tool says of itself."""
    for word in ("git", "mv", "shell", "computer", "skill"):
        assert not looks_up(one(f"get_{word}", "city", description=f"{before} {after}"))
        assert not looks_up(one(f"{word}_weather", "city", description=f"{before} {after}"))


def test_tools_that_reckon_get_numbers_alone() -> None:
    """One that takes text is not called: it might evaluate it."""
    assert looks_up(one("multiply", "a", "b", type="integer"))
    assert looks_up(one("add_two_numbers", "a", "b", type="number"))
    assert not looks_up(one("calculate", "formula"))
    assert not looks_up(one("add_user", "id", type="integer"))


def test_the_house_model_calls_what_looks_things_up(referee: Referee) -> None:
    """Beside tools that act it takes the harmless one."""
    got = post(referee, "groq", body("openai/gpt-oss-120b", user(PROMPT), tools=[*ACTING, WEATHER]))

    assert ["get_weather"] == [name for name, _ in called(got.message)]


def test_a_script_drives_an_agent_by_its_own_tools() -> None:
    """Requests without tools take no step; calls have the tool's own name and parameters; texts have the notes."""
    with Referee(read_script(SCRIPT), drives=True) as referee:
        title = post(referee, "deepseek", body("deepseek-v4-pro", user("A title, please.")))
        client = Client(referee, "deepseek", {"model": "deepseek-v4-pro", "tools": ACTING}, [])
        said = client.ask("List the files.")

    assert ([], [("Bash", {"command": "ls"})]) == (called(title.message), called(client.messages[1]))
    assert f"There: {KNOWN.format(word=code_word('List the files.'))}." == said


def test_a_script_that_calls_what_is_not_offered_says_so() -> None:
    """The agent reads it as the answer."""
    with Referee(read_script('[{"calls": [{"tool": "none"}]}]'), drives=True) as referee:
        got = post(referee, "deepseek", body("deepseek-v4-pro", user("Go."), tools=ACTING))

    assert "The script calls none, and no such tool is offered." == got.message["content"]


@pytest.mark.parametrize("text", ["", "{}", "[]", "[1]", '[{"say": "x"}]', '[{"calls": [{"name": "x"}]}]'])
def test_a_script_that_is_none_is_refused(text: str, tmp_path: Path) -> None:
    """With what is wrong, before anything is served."""
    with pytest.raises(ValueError, match=r"it is|step 1"):
        read_script(text)
    (tmp_path / "script.json").write_text(text)
    done = Command(tmp_path)("referee", "--script", str(tmp_path / "script.json"))

    assert 2 == done.code
    assert "cannot be played" in done.err


def test_the_fields_of_codex_are_taken(referee: Referee) -> None:
    """OpenAI takes them; another field that nobody knows is refused."""
    item = {"role": "user", "content": "Hello.", "internal_chat_message_metadata_passthrough": {"a": "b"}}
    asked: Body = {"model": "gpt-5.6", "input": [item], "client_metadata": {"a": "b"}}
    bodies = [json.dumps(given).encode() for given in (asked, {**asked, "made_up": 1})]
    sent = {"content-type": "application/json"}

    assert [200, 400] == [send(referee, "POST", "/openai/v1/responses", data, sent).status for data in bodies]
