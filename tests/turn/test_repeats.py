"""The same call that fails the same way: the loop ends and says so."""

from __future__ import annotations

from tests.turn.playbook import Playbook, answers, begins, call, chunk, ends, gives, keeps, runs, said, sends
from thinkback.model.blocks import ToolCall
from thinkback.model.commits import TurnEnded
from thinkback.turn.permissions import Verdict

TOOLS = frozenset({"look", "go"})
ONE = "request response tool_call"


def permit(call: ToolCall) -> Verdict:
    """``look`` reads, ``go`` runs."""
    return Verdict("allow", "reads" if call.name == "look" else "runs")


def calls(
    play: Playbook, name: str = "look", arguments: str = "{}", result: str = "no", error: bool = True
) -> Playbook:
    """One more response that calls ``name`` and is told ``result``."""
    id = f"{name}-{len(play.plans)}"
    play >> answers(call(id, name, arguments), chunk("tool_calls")) << keeps(ONE) << runs(name)
    return play >> gives(id, result, error) << keeps("result")


def playbook(**ask: object) -> Playbook:
    """A turn that has begun."""
    return Playbook(runnable=TOOLS, permit=permit, **ask) >> begins << keeps("user") << sends  # type: ignore[arg-type]


def test_three_times_in_vain_end_the_turn() -> None:
    """The results are stored, so that the next request is valid; state and reason say what it was."""
    play = calls(calls(calls(playbook()) << sends) << sends)
    play << keeps("stalled") << ends("stalled")
    reason = "look failed 3 times in the same way with the same arguments"
    assert play.outcome is not None
    assert reason == play.outcome.reason
    assert TurnEnded("stalled", reason) == play.history.commits[-1].value
    following = Playbook("And?", history=play.history) >> begins << keeps("user") << sends
    assert 3 == sum(role == "tool" for role, _ in following.texts)


def test_how_often_is_the_callers_choice() -> None:
    """Once may be enough."""
    calls(playbook(max_repeats=1)) << keeps("stalled") << ends("stalled")


def test_arguments_are_the_same_however_they_are_written() -> None:
    """Order of keys and white space mean nothing; what is no JSON is taken as it is."""
    play = calls(playbook(max_repeats=2), arguments='{"a":1,"b":2}') << sends
    calls(play, arguments='{ "b": 2, "a": 1 }') << keeps("stalled") << ends("stalled")
    play = calls(playbook(max_repeats=2), arguments='{"a"') << sends
    calls(play, arguments='{"a"') << keeps("stalled") << ends("stalled")


def test_another_failure_is_not_the_same() -> None:
    """Neither with other arguments nor with another error, nor of another tool."""
    play = calls(playbook(max_repeats=2)) << sends
    play = calls(play, arguments='{"a":1}') << sends
    play = calls(play, result="nay") << sends
    calls(play, "go") << sends


def test_reading_in_between_changes_nothing() -> None:
    """A model that looks and fails and looks again goes round in circles."""
    play = calls(playbook(max_repeats=2), "go") << sends
    play = calls(play, "look", result="rain", error=False) << sends
    calls(play, "go") << keeps("stalled") << ends("stalled")


def test_what_changed_something_makes_it_worth_another_attempt() -> None:
    """A test that fails again after an edit is no loop."""
    play = calls(playbook(max_repeats=2), "look") << sends
    play = calls(play, "go", result="done", error=False) << sends
    calls(play, "look") << sends


def test_calls_of_one_response_count_once() -> None:
    """The model did not know of the first when it made the second."""
    play = playbook(max_repeats=2) >> answers(said("", "Hm.", "look-1", "look-2"))
    play << keeps("request response reasoning tool_call tool_call") << runs("look", "look")
    play >> gives("look-1", "no", True) << keeps("result") >> gives("look-2", "no", True) << keeps("result") << sends


def test_a_change_beside_the_last_failure_counts_too() -> None:
    """Whichever came back first."""
    play = calls(playbook(max_repeats=2)) << sends >> answers(said("", "Hm.", "look-2", "go-2"))
    play << keeps("request response reasoning tool_call tool_call") << runs("look", "go")
    play >> gives("look-2", "no", True) << keeps("result") >> gives("go-2", "done") << keeps("result") << sends
