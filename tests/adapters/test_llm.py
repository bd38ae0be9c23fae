"""The plugin for ``llm``: its conversations are sessions, and reasoning goes back as each provider demands."""

from __future__ import annotations

import asyncio
import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
import tomlkit
from click.testing import CliRunner

import thinkback
from bench.gateway_clients.holding import hold
from bench.gateway_clients.job import ASYNC, SYNC, TOOLS, Job
from bench.gateway_clients.page import Judged
from bench.gateway_clients.places import DEMANDS, PLACES
from tests.adapters.hosts import need
from thinkback.rules import load_rulebook
from thinkback_referee import KNOWN, Referee, Step, code_word

need("llm")

import llm  # noqa: E402
from llm.plugins import load_plugins, pm  # noqa: E402

from thinkback.adapters import llm as plugin  # noqa: E402

load_plugins()
if not pm.is_registered(plugin):  # thinkback is not installed in the environment of these tests
    pm.register(plugin, "thinkback")

from llm.cli import cli  # noqa: E402

KEY = "sk-not-for-any-log-0123456789"
MODEL = "thinkback/anthropic/claude-opus-5-5"
"""It demands its reasoning of all turns."""
CHAT = "thinkback/deepseek/deepseek-v4-pro"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, referee: Referee) -> None:
    """A machine whose providers are the referee, with a key for each."""
    referee.reset()
    book, rows, hosts = load_rulebook(), [], {place.endpoint: place.host for place in PLACES.values()}
    for id, host in hosts.items():
        endpoint = book.endpoint(id)
        rows.append({**msgspec.to_builtins(endpoint), "base_url": referee.base_url(host), "source": "a test"})
        monkeypatch.setenv(endpoint.auth.env[0] if endpoint.auth.env else "NO_KEY", KEY)
    (tmp_path / "rules.toml").write_text(tomlkit.dumps({"endpoint": rows}))
    monkeypatch.setenv("THINKBACK_CONFIG_DIR", str(tmp_path))
    monkeypatch.setenv("THINKBACK_DB", str(tmp_path / "chats.db"))
    monkeypatch.setenv("THINKBACK_USAGE_LOG", str(tmp_path / "usage.jsonl"))
    monkeypatch.setenv("LLM_USER_PATH", str(tmp_path))


def run(*arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(cli, arguments)
    assert code == done.exit_code, (done.output, done.exception)
    return str(done.output)


def ask(*arguments: str) -> str:
    """An answer without the reasoning above it."""
    return run(*arguments, "-R").strip()


def sent(referee: Referee, last: int = 1) -> Any:
    """The body of a request, counted from the last one."""
    return referee.requests[-last].body


def knows(text: str, *prompts: str) -> bool:
    return all(KNOWN.format(word=code_word(prompt)) in text for prompt in prompts)


def test_llm_finds_the_plugin() -> None:
    """By the entry point of an installed thinkback."""
    told = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())

    assert {"thinkback": plugin.__name__} == told["project"]["entry-points"]["llm"]


class _Plugin:
    """Has a conversation by llm's own loop."""

    def hold(self, job: Job) -> tuple[list[str], str]:
        name = f"thinkback/{job.endpoint}/{job.model}"
        options = {"effort": job.effort} if job.effort else {}
        if f"thinkback/{job.endpoint}/{job.model}" not in {model.model_id for model in llm.get_models()}:
            name, options = f"thinkback/{job.endpoint}", {**options, "model": job.model}
        try:
            if job.mode == SYNC:
                conversation: Any = llm.get_model(name).conversation(tools=list(TOOLS.values()))
                chains = (conversation.chain(prompt, options=options).responses() for prompt in job.prompts)
                return [list(chain)[-1].text() for chain in chains], ""
            return asyncio.run(self._hold_async(name, options, job.prompts)), ""
        except llm.ModelError as error:
            return [], str(error)

    async def _hold_async(self, name: str, options: Mapping[str, str], prompts: list[str]) -> list[str]:
        conversation: Any = llm.get_async_model(name).conversation(tools=list(TOOLS.values()))
        said = []
        for prompt in prompts:
            chain = conversation.chain(prompt, options=dict(options))
            said.append([await response.text() async for response in chain.responses()][-1])
        return said


@pytest.mark.parametrize("mode", [SYNC, ASYNC])
@pytest.mark.parametrize("name", sorted(DEMANDS))
def test_three_questions_at_every_provider_that_demands_reasoning(name: str, mode: str, referee: Referee) -> None:
    """Nothing is refused and nothing forgotten, with tools that llm runs."""
    place = PLACES[name]
    job = Job("llm", mode, "", "", place.model, place.effort, [], "", place.endpoint)
    held = hold(_Plugin(), referee, job, place, True)

    assert "ok" == Judged([held]).word(held), held


def test_a_conversation_is_a_session(tmp_path: Path, referee: Referee) -> None:
    """`-c` goes on in it, also after a turn in thinkback itself; llm's log has the texts, and neither has the key."""
    run("-m", MODEL, "What is red?", "-s", "You are terse.")
    ask("-c", "And blue?")
    (cid,) = {row["conversation_id"] for row in json.loads(run("logs", "--json", "-n", "0"))}
    with thinkback.open(tmp_path / "chats.db") as store:
        reply = store.session(f"llm-{cid}").chat("And here?")
        assert knows(reply.text, "What is red?", "And blue?")
    last = ask("--cid", cid, "And now?", "--async")

    assert knows(last, "What is red?", "And blue?", "And here?")
    assert knows(ask("-c", "Sure?"), "And now?", "And here?")
    with thinkback.open(tmp_path / "chats.db") as store:
        (info,) = store.sessions()
        kinds = [commit.kind for commit in store.commits(info.name)]
        assert (f"llm-{cid}", "main", 5, 1) == (info.name, info.branch, kinds.count("user"), kinds.count("system"))
    assert "goes back as it came" in run("thinkback", "why")
    assert run("thinkback", "why", "--cid", cid) == run("thinkback", "why", f"llm-{cid}")
    logged = b"".join(file.read_bytes() for file in tmp_path.glob("*.db*"))
    assert KEY.encode() not in logged
    assert {200} == {exchange.status for exchange in referee.requests}


def test_reasoning_is_shown_and_logged(tmp_path: Path, referee: Referee) -> None:
    """Readable reasoning is told apart from the answer, and what nobody may read is marked."""
    referee.push(Step(reasoning="Two and two.", text="4"))
    response = llm.get_model(CHAT).prompt("2+2?")
    events = list(response.stream_events())

    assert ("Two and two.", "4") == tuple(
        "".join(event.chunk for event in events if event.type == kind) for kind in ("reasoning", "text")
    )
    assert ("deepseek-v4-pro", True) == (response.resolved_model, response.usage().details["reasoning_tokens"] > 0)
    (tmp_path / "settings.toml").write_text('[reasoning]\ndisplay = "omitted"\n')
    hidden = llm.get_model(MODEL).prompt("2+2?")
    hidden.text()
    assert [True, False] == [getattr(part, "redacted", False) for part in hidden.messages()[0].parts]


def test_a_question_that_was_broken_off_is_left_behind(tmp_path: Path, referee: Referee) -> None:
    """llm logs nothing of it, so that its next question does not follow it; our log keeps it on its own branch."""
    conversation = llm.get_model(MODEL).conversation()
    conversation.prompt("First?").text()
    events = conversation.prompt("Broken off?").stream_events()
    next(events)
    events.close()
    assert knows(conversation.prompt("Second?").text(), "First?")
    assert knows(conversation.prompt("Third?").text(), "First?", "Second?")

    assert [1, 3, 3, 5] == [len(sent(referee, last)["messages"]) for last in (4, 3, 2, 1)]
    assert "Broken off?" not in json.dumps(referee.requests[-1].body)
    with thinkback.open(tmp_path / "chats.db") as store:
        (info,) = store.sessions()
        assert 2 == len(store.log.refs.list(info.id))


def test_two_at_once_are_both_answered(tmp_path: Path, referee: Referee) -> None:
    """The second goes on beside the turn that is under way, which is whole as well."""
    with thinkback.open(tmp_path / "chats.db") as store:
        session = store.session("busy", endpoint="deepseek", model="deepseek-v4-pro")
        with session.stream("One?") as stream:
            deltas = iter(stream)
            next(deltas)
            assert "Two?" in ask("-m", CHAT, "Two?", "-o", "session", "busy")
            assert [] == [delta for delta in deltas if isinstance(delta, thinkback.Status)]
        said = {branch.name: str(store.log.read(session.id, branch=branch.name)) for branch in session.branches.list()}
        assert ["completed", 2] == [stream.reply.state, len(said)]


def test_a_log_that_is_locked_or_closed_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As any trouble of ours, by llm's error."""
    (tmp_path / "chats.db").write_text("not a database, and longer than its header would be" * 9)
    with pytest.raises(llm.ModelError, match="database"):
        llm.get_model(CHAT).prompt("Hi").text()


def test_what_a_program_says_of_the_history_holds(referee: Referee) -> None:
    """`reply` goes on behind its response; a changed history is another branch, without its old reasoning."""
    first = llm.get_model(MODEL).prompt("First?")
    second = first.reply("Second?")
    other = first.reply("Other?")
    assert knows(second.text(), "First?")
    assert knows(other.text(), "First?")
    assert "Second?" not in str(referee.requests[-1].body)
    changed = [llm.user("Was it first?"), *first.messages(), llm.user("So?")]
    llm.get_model(MODEL).prompt(messages=changed).text()

    said = [message["content"] for message in sent(referee)["messages"] if message["role"] == "user"]
    assert ["Was it first?", "So?"] == said
    assert {200} == {exchange.status for exchange in referee.requests}


def test_a_conversation_with_another_model_goes_on_here(referee: Referee) -> None:
    """What others said is taken over as text."""
    conversation = llm.get_model(CHAT).conversation()
    conversation.loaded_messages = [llm.user("Who?"), llm.assistant("A heron.")]
    conversation.prompt("Why?").text()

    assert ["Who?", "A heron.", "Why?"] == [message["content"] for message in sent(referee)["messages"]]


def test_options_attachments_and_schemas_reach_the_provider(tmp_path: Path, referee: Referee) -> None:
    """Said in the words of the place."""
    ask("-m", CHAT, "Hi", "-o", "effort", "low", "-o", "session", "mine", "-o", "max_tokens", "900")
    ask(
        "-c",
        "On",
        "-m",
        "thinkback/anthropic",
        "-o",
        "model",
        "claude-sonnet-4-5",
        "--at",
        _pixel(tmp_path),
        "image/png",
    )
    referee.push(Step(reasoning="Hm.", text='{"name": "Ada"}'))
    ask("-m", "thinkback/openai", "-o", "model", "gpt-5.6", "--schema", "name, bio", "A dog")

    low, shown, shaped = (sent(referee, last) for last in (3, 2, 1))
    assert ("low", 900) == (low["reasoning_effort"], low["max_tokens"])
    assert ["text", "image"] == [part["type"] for part in shown["messages"][-1]["content"]]
    assert "name" in shaped["text"]["format"]["schema"]["properties"]
    with thinkback.open(tmp_path / "chats.db") as store:
        assert 2 == [commit.kind for commit in store.commits("mine")].count("user")


def _pixel(place: Path) -> str:
    file = place / "pixel.png"
    file.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(20))
    return str(file)


def test_what_goes_wrong_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, referee: Referee) -> None:
    """In a sentence with what to do, by llm's own error."""
    assert "thinkback/zai/" not in run("models", "list")
    monkeypatch.setenv(load_rulebook().endpoint("zai").auth.env[0], KEY)
    assert "thinkback/zai/" in run("models", "list")
    assert "no model was given" in run("-m", "thinkback/deepseek", "Hi", code=1)
    assert "reasoning.effort" in run("-m", CHAT, "Hi", "-o", "effort", "enormous", code=1)
    referee.push(Step(reasoning="Hm.", text=""))
    assert "no answer" in run("-m", CHAT, "Hi", code=1)
    with pytest.raises(llm.ModelError, match="nothing to ask"):
        llm.get_model(MODEL).prompt(messages=[llm.user("a"), llm.assistant("b")]).text()
    (tmp_path / "rules.toml").write_text("[[endpoint]]\nid = 3\n")
    assert "thinkback offers no models" in run("models", "list")
