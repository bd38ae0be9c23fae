"""Laws of deciding, whatever the rules and the person say: everything is answered, nothing runs too early."""

from __future__ import annotations

from collections import deque
from typing import Literal, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from tests.turn.playbook import NOW, Playbook, call, chunk
from thinkback.log.seal import seal
from thinkback.model.blocks import ToolCall, ToolResult
from thinkback.model.commits import PermissionDecision, TurnEnded
from thinkback.turn import events
from thinkback.turn.permissions import PermissionAnswer, Verdict


class Case(NamedTuple):
    """What the rules say of a call, and what a person would."""

    rule: Literal["allow", "silent", "ask", "deny"]
    person: Literal["yes", "no", "leaves"] = "yes"


CASES = st.lists(
    st.builds(Case, st.sampled_from(["allow", "silent", "ask", "deny"]), st.sampled_from(["yes", "no", "leaves"])),
    min_size=1,
    max_size=6,
)


def verdict(case: Case) -> Verdict:
    """What the rules say."""
    return Verdict("allow") if case.rule == "silent" else Verdict(case.rule, "runs", "rule", "because")


def played(cases: list[Case], same_ids: bool) -> tuple[Playbook, list[str]]:
    """A turn whose response makes a call for each case, up to its end or its second request; and what happened."""
    names = {f"tool{at}": case for at, case in enumerate(cases)}
    play = Playbook(runnable=frozenset(names), asks=True, permit=lambda call: verdict(names[call.name]))
    calls = [call("id" if same_ids else f"id{at}", name, index=at) for at, name in enumerate(names)]
    body = b"".join([*calls, chunk("tool_calls")])
    happened: list[str] = []
    queue = deque(play.turn.on(events.Began(NOW)))
    while queue:
        command = queue.popleft()
        match command:
            case events.BuildRequest() | events.Review() | events.Permit():
                queue += play.turn.on(play.answer(command))
            case events.Append(id=id, step=step):
                happened += [f"stored {draft.kind}" for draft in step.drafts]
                queue += play.turn.on(events.Appended(id, tuple(seal(step, play.history.head)), NOW))
            case events.Send() if "sent" not in happened:
                happened.append("sent")
                queue += play.turn.on(events.Head(command.id, 200, {"content-type": "text/event-stream"}, NOW))
                queue += play.turn.on(events.Bytes(command.id, body, NOW))
                queue += play.turn.on(events.Closed(command.id, NOW))
            case events.Send():
                happened.append("sent again")
                return play, happened
            case events.AskPerson(id=id, request=request):
                happened.append(f"asked {request.call.name}")
                person = names[request.call.name].person
                answer = events.Answered(id, PermissionAnswer(person == "yes"), NOW)
                queue += play.turn.on(events.Interrupt(NOW) if person == "leaves" else answer)
            case events.RunTool(id=id):
                happened.append(f"ran {command.call.name}")
                queue += play.turn.on(events.ToolDone(id, "done", False, NOW))
            case _:
                pass
    return play, happened


@given(CASES, st.booleans())
def test_every_call_is_answered_once_and_the_next_request_is_whole(cases: list[Case], same_ids: bool) -> None:
    """Run, denied, not run or interrupted: each call of the response has one result, in the order of the calls."""
    play, _ = played(cases, same_ids)
    values = [commit.value for commit in play.history.commits]
    calls = [value.name for value in values if isinstance(value, ToolCall)]
    assert sorted(calls) == sorted(value.name for value in values if isinstance(value, ToolResult))
    if same_ids:
        assert calls == [value.name for value in values if isinstance(value, ToolResult)]


@given(CASES, st.booleans())
def test_nothing_runs_before_all_is_decided_and_stored(cases: list[Case], same_ids: bool) -> None:
    """Nor is anybody asked behind a no, or about what runs without a word."""
    _, happened = played(cases, same_ids)
    runs = [at for at, what in enumerate(happened) if what.startswith("ran")]
    decides = [at for at, what in enumerate(happened) if what.startswith("asked") or what.endswith("decision")]
    assert not runs or not decides or max(decides) < min(runs)
    asked = [what.removeprefix("asked tool") for what in happened if what.startswith("asked")]
    assert asked == sorted(asked)
    assert all(cases[int(at)].rule == "ask" for at in asked)
    assert all(cases[int(at)].person == "yes" for at in asked[:-1])


@given(CASES, st.booleans())
def test_the_turn_ends_as_rules_and_person_say(cases: list[Case], same_ids: bool) -> None:
    """A rule's denial first, then the first word of a person that is no yes; else everything runs."""
    play, happened = played(cases, same_ids)
    denied = any(case.rule == "deny" for case in cases)
    words = [case.person for case in cases if case.rule == "ask" and case.person != "yes"]
    ends = [commit.value.state for commit in play.history.commits if isinstance(commit.value, TurnEnded)]
    wanted = "denied" if denied else {"no": "denied", "leaves": "interrupted"}.get(words[0] if words else "")
    assert ([wanted] if wanted else []) == ends
    assert (wanted is None) == ("sent again" in happened)
    assert (0 if wanted else len(cases)) == sum(what.startswith("ran") for what in happened)
    decisions = [commit.value for commit in play.history.commits if isinstance(commit.value, PermissionDecision)]
    assert (wanted == "denied") == ("denied" in [decision.decision for decision in decisions])
    assert not wanted or [] == [d for d in decisions[:-1] if d.decision == "denied"]
