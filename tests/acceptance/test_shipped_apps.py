"""The apps that ship, each at its work with a model of every dialect, before the referee."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.hosts import every_dialect, statuses, talk
from tests.conformance.moves import Place
from thinkback.session.agents.toolbox import toolbox
from thinkback.session.store import SessionStore
from thinkback.turn.permissions import PermissionRequest
from thinkback_referee import Call, Referee, Step

BROKEN = "def double(x):\n    return x + 1\n"
MENDED = "def double(x):\n    return x * 2\n"
CHECK = "python3 -c 'import a; print(a.double(21))'"


@every_dialect
def test_the_coding_agent_reads_changes_and_runs(
    store: SessionStore, referee: Referee, place: Place, tmp_path: Path
) -> None:
    """It asks before it writes and runs, not before it reads; what it did is in the directory."""
    (tmp_path / "a.py").write_text(BROKEN)
    referee.push(
        Step(reasoning="I look first.", tool_calls=[Call("read", {"path": "a.py"})]),
        Step(
            reasoning="One line is wrong.",
            tool_calls=[Call("edit", {"path": "a.py", "old_string": "x + 1", "new_string": "x * 2"})],
        ),
        Step(reasoning="I check it.", tool_calls=[Call("shell", {"command": CHECK})]),
        Step(reasoning="It says 42.", text="Mended, and checked."),
    )
    session = talk(store, referee, place, app="coding")
    asked: list[str] = []

    def approve(request: PermissionRequest) -> bool:
        asked.append(request.call.name)
        return True

    with toolbox(session, session.app.tools if session.app else (), workspace=tmp_path) as tools:
        reply = session.chat("double() is wrong.", tools=tools, approve=approve)
    assert ("completed", "Mended, and checked.") == (reply.state, reply.text)
    assert MENDED == (tmp_path / "a.py").read_text()
    assert ["edit", "shell"] == asked
    assert "42" in str([commit.value for commit in session.log(kinds=("tool_result",))][-1])
    assert {200} == set(statuses(referee))


@pytest.mark.filterwarnings("ignore:reasoning.effort = high is not sent:UserWarning")
@every_dialect
def test_research_gives_its_parts_to_sub_agents(
    store: SessionStore, referee: Referee, place: Place, tmp_path: Path
) -> None:
    """Each part is a session of its own, with the app's prompt and a task; what they find comes back as results."""
    referee.push(
        Step(
            reasoning="Two parts.",
            tool_calls=[
                Call("task", {"prompt": "Find out A.", "purpose": "A"}),
                Call("task", {"prompt": "Find out B.", "purpose": "B"}),
            ],
        ),
        Step(reasoning="Easy.", text="It is so."),
        Step(reasoning="Easy.", text="It is so."),
        Step(reasoning="They agree.", text="Both are so."),
    )
    session = talk(store, referee, place, app="research")
    with toolbox(session, session.app.tools if session.app else (), workspace=tmp_path) as tools:
        reply = session.chat("What of A and B?", tools=tools)
    assert ("completed", "Both are so.") == (reply.state, reply.text)
    results = [str(commit.value) for commit in session.log(kinds=("tool_result",))]
    assert [True, True] == ["It is so." in result for result in results]
    children = [info for info in store.sessions() if info.parent]
    assert 2 == len(children)
    assert all("sub-agent" in str(store.commits(info.name)[0].value) for info in children)
    assert {200} == set(statuses(referee))


def test_the_coding_agent_does_nothing_without_a_persons_word(
    store: SessionStore, referee: Referee, tmp_path: Path
) -> None:
    """Where nobody can be asked, nothing is written; the next request is valid all the same."""
    (tmp_path / "a.py").write_text(BROKEN)
    session = store.session(
        "s",
        endpoint="deepseek",
        model="deepseek-v4-pro",
        base_url=referee.base_url("deepseek"),
        api_key="k",
        app="coding",
    )
    referee.push(Step(reasoning="I change it.", tool_calls=[Call("write", {"path": "a.py", "content": "gone"})]))
    with toolbox(session, ["read", "write"], workspace=tmp_path) as tools:
        assert "completed" != session.chat("double() is wrong.", tools=tools).state
        assert BROKEN == (tmp_path / "a.py").read_text()
        assert "completed" == session.chat("Never mind.", tools=tools).state
    assert {200} == set(statuses(referee))


@pytest.mark.filterwarnings("ignore:reasoning.effort = .* is not sent:UserWarning")
@every_dialect
@pytest.mark.parametrize("app", ["translator", "tutor"])
def test_an_app_that_talks_keeps_its_prompt_and_its_reasoning(
    store: SessionStore, referee: Referee, place: Place, app: str
) -> None:
    """Five turns: the prompt stands in each request, once, and nothing is refused."""
    session = talk(store, referee, place, app=app)
    assert session.app is not None
    for at in range(5):
        referee.push(Step(reasoning=f"thought {at}", text=f"answer {at}"))
        assert f"answer {at}" == session.chat(f"question {at}").text
    assert 1 == str(referee.requests[-1].body).count(session.app.system_prompt.splitlines()[0])
    assert {200} == set(statuses(referee))
    assert "app" == session.layers.origin("reasoning.keepLast").layer
