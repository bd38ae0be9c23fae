"""Coding agents and the gateway: the model calls what is offered, a hanging program is ended, the page has it all."""

from __future__ import annotations

import json
import os
from contextlib import closing
from pathlib import Path

import pytest

from bench.coding_agents.account import Account, Ends, Marked, Sent, Stored, digest_of_step, stored
from bench.coding_agents.agents import AGENTS, NODE, STORED
from bench.coding_agents.cell import Cell, Where, play
from bench.coding_agents.install import LOCKS, Installed, version
from bench.coding_agents.model import FILES, agent_step, asks, ended
from bench.coding_agents.page import DEMANDING, Judged, page
from bench.coding_agents.process import Running, environment
from bench.coding_agents.trial import LEAST, plan
from tests.servers.gateway.harness.engines import Fresh, ask, engine
from thinkback.cli.connect.agents import AGENTS as CONNECTED
from thinkback.stores import open_store
from thinkback_referee import Call, Exchange, Referee, Step
from thinkback_referee.persona import OfferedTool, View

STRINGS = {"type": "string"}
SHELL = OfferedTool("Bash", "", {"properties": {"command": STRINGS}, "required": ["command"]})
READ = OfferedTool("Read", "", {"properties": {"file_path": STRINGS}, "required": ["file_path"]})
PLACE = "OpenAI Responses"


def cell(through: bool = True, word: str = "ok", known: int = 2, text: str = "") -> Cell:
    """A conversation of Codex with two code words noted."""
    words = ["amber-111", "birch-222"]
    act = "" if word == "ok" else "three rounds"
    return Cell("codex", PLACE, through, word, act, text, ["three rounds"], 6, words, words[:known])


def test_the_plan_is_played_with_the_tools_that_are_offered() -> None:
    """Three rounds, the second with two calls at once, the reader last; reminders behind the words change nothing."""
    asked = f"{asks('boxes', '/box')}<system-reminder>Be brief.</system-reminder>"
    rounds = [agent_step(View(asked, tools=(SHELL, READ), rounds=number, steps=number)) for number in range(4)]
    one, two, three = (f"/box/{name}" for name in FILES)
    shell = [[Call("Bash", {"command": f"cat {one}"})]]
    shell.append([Call("Bash", {"command": f"cat {two}"}), Call("Bash", {"command": f"wc -c {three}"})])
    assert [*shell, [Call("Read", {"file_path": three})], []] == [step.tool_calls for step in rounds]
    assert rounds[3].text.startswith(ended("boxes"))


def test_without_tools_or_a_plan_the_model_talks() -> None:
    """A request for a title, and words of somebody else."""
    asked = (View(asks("boxes", "/box")), View("plan:nothing() in /box", tools=(SHELL,)), View("hi", tools=(SHELL,)))
    assert ["Understood. "] * 3 == [agent_step(view).text for view in asked]


def test_a_program_that_hangs_is_ended_with_what_it_started(tmp_path: Path) -> None:
    """The pipe that both hold is closed when both have ended."""
    read, held = os.pipe()
    os.set_inheritable(held, True)
    program = f"exec 3>&{held}; sleep 60 & echo started; wait"
    running = Running(["bash", "-c", program], tmp_path, {"PATH": os.environ["PATH"]}, keep=(held,))
    os.close(held)
    ran = running.wait(0.5)
    assert (b"", True) == (os.read(read, 1), ran.failed.startswith("no end after 0.5 s"))
    os.close(read)


def test_an_agent_that_cannot_be_connected_fails_in_its_conversation_alone() -> None:
    """CrewAI takes no name with a slash; the run goes on with the next conversation."""
    place = DEMANDING["OpenRouter chat"]
    with Referee() as referee:
        found = play("crewai", Installed(("none",)), referee, place, Where("http://127.0.0.1:1", "k", place.model))
    assert ("failed", "three rounds") == (found.word, found.act)
    assert found.text.startswith("thinkback connect: ")


def test_agents_find_nothing_of_whoever_runs_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither keys nor proxies nor a home."""
    for name in ("OPENAI_API_KEY", "HTTPS_PROXY", "CODEX_HOME"):
        monkeypatch.setenv(name, "mine")
    found = environment(tmp_path, [], {"MORE": "1"})
    assert (str(tmp_path), "1", False) == (found["HOME"], found["MORE"], "mine" in found.values())


@pytest.mark.parametrize("name", [NODE, *(name for name, agent in STORED.items() if not agent.is_python)])
def test_locks_have_hashes_and_no_addresses(name: str) -> None:
    """Every package with its integrity, and nothing that says where it came from."""
    text = (LOCKS / f"{name}.json").read_text(encoding="utf-8")
    packages = json.loads(text)["packages"]
    assert ("://" in text, []) == (
        False,
        [path for path, each in packages.items() if path and not each.get("integrity")],
    )


def test_every_agent_that_can_be_connected_is_run() -> None:
    """And each has a version."""
    assert set(CONNECTED) == {agent.connect for agent in AGENTS.values()}
    assert all(version(name, agent) for name, agent in AGENTS.items())


def test_page_shows_both_ways_and_what_is_left_out() -> None:
    """What the model no longer knows is forgotten where it knew that before; texts have numbers."""
    found = {name: Installed(missing="npm is not installed") for name in AGENTS}
    found["codex"] = Installed(("codex",), "1.2")
    cells = [cell(through=False, word="refused", text="bad messages[3].x"), cell()]
    text = page(cells, found, "v22").splitlines()
    assert f"| {PLACE} | refused [1] → ok |" in text
    assert "1. three rounds: bad messages[N].x" in text
    assert "| aider | aider-chat |  | two questions | left out: npm is not installed |" in text
    assert ["forgot", "none"] == [
        Judged([cell(), each]).word(each) for each in (cell(known=1), cell()._replace(noted=[]))
    ]


def response(number: int, began: float = 1.0, ended: float = 2.0) -> Sent:
    """A response of the referee's."""
    return Sent(f"d{number}", "deepseek", began, ended, whole=True)


def account(*ids: str, acknowledged: str = "", **more: Stored) -> Account:
    """Four responses, of which those of these ids are in the log; the gateway was killed at 9.5, the agent at 20."""
    sent = [response(1), response(2, 9.0, 9.4), response(3, 9.0, 12.0), response(4, 20.1, 20.9)]
    found = {f"r{id}": Stored(frozenset({f"d{id}"}), complete=True, recorded=True) for id in ids}
    return Account(sent, frozenset(acknowledged.split()), {**found, **more}, [9.5], [20.0])


def test_only_what_was_under_way_at_a_kill_may_be_missing_in_a_trial() -> None:
    """Written whole a moment before it, too; not what a client got to its end."""
    found = account("1")
    assert ([], ["d2", "d3"], ["d4"], False) == (
        found.lost,
        [each.digest for each in found.by_gateway],
        [each.digest for each in found.by_agent],
        found.wrong(),
    )
    assert ["d1"] == [each.digest for each in account("2").lost]
    assert ["r2"] == account("1", acknowledged="r1 r2").unstored
    cut = Stored(frozenset(), complete=False, recorded=True)
    assert ["r2"] == account("1", acknowledged="r2", r2=cut).unstored


def test_a_trial_finds_what_is_doubled_and_what_was_not_sent() -> None:
    """What a client brings back of its own counts for neither."""
    again = Stored(frozenset({"d1"}), complete=True, recorded=True)
    assert (["d1"], []) == ((found := account("1", r9=again)).doubled, found.made_up)
    assert not account("1", r9=again._replace(recorded=False)).wrong()
    assert ["d9"] == account("1", r9=again._replace(digests=frozenset({"d9"}))).made_up
    assert ["r1"] == account(r1=again._replace(digests=frozenset({"d1", "d2"}))).doubled


def test_responses_in_a_log_have_the_digests_of_what_the_referee_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Text, calls with arguments and calls with a script; each response is another than all before it."""
    monkeypatch.setenv("THINKBACK_TEST_KEY", "sk-any")
    said: list[str] = []

    def end(exchange: Exchange, whole: bool) -> None:
        said.append(digest_of_step(exchange.step or Step()))

    custom = {"type": "custom", "name": "exec", "description": "Run a script."}
    tools = {"type": "additional_tools", "role": "developer", "tools": [custom]}
    shell = {"type": "function", "name": "bash", "parameters": SHELL.parameters}
    question = {"role": "user", "content": asks("boxes", "/box")}
    with Referee(house=Marked(), ended=end) as referee, closing(open_store(str(tmp_path / "talk.db"))) as log:
        made = engine(Fresh(), referee, log)
        for body in ({"input": [tools, question]}, {"input": [question], "tools": [shell]}, {"input": [question]}):
            for model in ("openai/gpt-6-sol", "deepseek/deepseek-v4-pro"):
                kept = ask(made, "openai-responses", {"model": model, "store": False, **body})
                assert (200, "") == (kept.status, kept.json.get("error") or "")
    found = stored(tmp_path)
    assert all(each.recorded for each in found.values())
    assert len(said) == len(set(said)) == len(found) == 6
    assert {digest for each in found.values() for digest in each.digests} == set(said)


def test_the_tap_hears_the_end_of_a_response_wherever_it_is_cut() -> None:
    """The id in its head, the event at its end; the next one on the same connection too."""
    answer = b"HTTP/1.1 200 OK\r\nthinkback-response: %s\r\n\r\nevent: response.created\n%s"
    ends = (b"r1", b"event: response.completed\n"), (b"r2", b""), (b"r3", b"event: message_stop\n")
    data = b"".join(answer % each for each in ends)
    for cut in range(len(data)):
        heard = Ends()
        assert ["r1", "r3"] == [*heard.take(data[:cut]), *heard.take(data[cut:])]


def test_the_same_seed_plans_the_same_trial() -> None:
    """With enough of each."""
    turns = plan(7, 300)
    assert plan(7, 300) == turns
    assert min(sum(turn.gateway > 0 for turn in turns), sum(turn.agent > 0 for turn in turns)) >= LEAST
