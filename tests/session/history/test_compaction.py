"""Checkpoints that somebody asks for: what they do is seen before, and the provider takes what is sent afterwards."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import thinkback
from tests.acceptance.hosts import OF, every_dialect, talk
from tests.conformance.moves import TOOLS, Place
from tests.session.chats import KEY, get_weather, kinds, messages, open_session, refusals, roles, run, statuses
from thinkback import Priority
from thinkback.errors import CompactionRefused, CredentialError, NotFoundError, SettingError, Veto
from thinkback.log.summary import Summary
from thinkback.model.commits import Commit, Compaction, Usage
from thinkback.session.history.compacting import CompactionPlan
from thinkback.session.requests import rebuild
from thinkback.session.session import Session
from thinkback.session.store import SessionStore
from thinkback_referee import HttpError, Referee, Step

LONG = "Please keep this in mind: " + "the quick brown fox jumps over the lazy dog. " * 30


def chatted(store: SessionStore, referee: Referee, count: int = 6, host: str = "deepseek", **more: Any) -> Session:
    """A session with so many finished turns of some 500 tokens each."""
    session = open_session(store, referee, host, **more)
    for number in range(count):
        session.chat(f"{number}: {LONG}")
    return session


def checkpoint(commit: Commit) -> Compaction:
    """The payload."""
    assert isinstance(commit.value, Compaction)
    return commit.value


def written(**fields: Any) -> str:
    """What a model answers that is to write a summary."""
    empty: dict[str, Any] = {name: [] for name in Summary.__struct_fields__}
    return json.dumps({**empty, "summary": "They spoke of a fox.", "current_objective": "More of it.", **fields})


def test_a_checkpoint_is_a_commit_and_nothing_goes(store: SessionStore, referee: Referee) -> None:
    """The log has all it had; the next request says the summary and the last turns, and is taken."""
    session = chatted(store, referee)
    before = session.log()
    made = session.compaction.run("deterministic", tail=2)
    assert [*before, made] == session.log()
    assert [made] == session.compaction.list()
    found = checkpoint(made)
    session.chat("What was it about?")
    assert ["user", "user", "assistant", "user", "assistant", "user"] == roles(referee)
    assert "0: Please keep this in mind" in messages(referee)[0]["content"]
    assert [] == refusals(referee)
    assert found.after < session.explain().counts.effective < found.before


def test_what_a_checkpoint_would_do_is_seen_before(store: SessionStore, referee: Referee) -> None:
    """The same is done afterwards; nothing is stored by looking."""
    session = chatted(store, referee)
    head = session.log()[-1]
    plan = session.compaction.plan("sliding_window", 2)
    assert head == session.log()[-1]
    assert (8, (), (), False) == (len(plan.covered), plan.kept, plan.trimmed, plan.estimated)
    assert (plan.checkpoint.before, plan.checkpoint.after) == (plan.before.effective, plan.after.effective)
    assert plan.after.effective == session.compaction.plan("sliding_window", 2).after.effective
    assert plan.checkpoint == session.compaction.run("sliding_window", 2).value
    assert plan.after.effective == session.explain(next=True).counts.effective


def test_defaults_are_settings(store: SessionStore, referee: Referee) -> None:
    """How, and how many turns stay; a text is a summary by hand."""
    session = chatted(store, referee)
    session.set("compaction.keepTurns", 3)
    session.set("compaction.strategy", "middle_out")
    plan = session.compaction.plan()
    assert ("middle_out", 4) == (plan.checkpoint.strategy, len(plan.covered))
    by_hand = session.compaction.run(text="They spoke of a fox.", reason="enough")
    assert ("manual", "They spoke of a fox.", "enough") == (
        checkpoint(by_hand).strategy,
        checkpoint(by_hand).summary,
        checkpoint(by_hand).reason,
    )


def test_old_results_are_trimmed_and_nothing_else(store: SessionStore, referee: Referee) -> None:
    """Head and tail go; the log has the whole, and the endpoint takes it."""
    session = open_session(store, referee)

    def look(city: str) -> str:
        """The weather of a city, in great detail."""
        return city + ": rain " * 2_000

    for _ in range(3):
        session.chat("How is the weather in Oslo?", tools=[look])
    made = session.compaction.run("tool_results", 1, size=300)
    assert 2 == len(checkpoint(made).trimmed)
    session.chat("And now?")
    sizes = [len(message["content"]) for message in messages(referee) if message["role"] == "tool"]
    assert [True, True, False, False] == [size < 500 for size in sizes]
    assert [] == refusals(referee)


def test_what_is_pinned_goes_word_for_word(store: SessionStore, referee: Referee) -> None:
    """Behind the summary, an answer with its reasoning."""
    session = chatted(store, referee, host="kimi")
    said = [commit for commit in session.log() if commit.kind in ("user", "assistant")]
    session.annotate(said[2].hash, Priority.PINNED)
    session.annotate(said[3].hash, Priority.PINNED)
    plan = session.compaction.plan(tail=1)
    assert 2 == len(plan.kept)
    session.compaction.run(tail=1)
    session.chat("Go on.")
    sent = messages(referee)
    assert f"1: {LONG}" == sent[1]["content"]
    assert sent[2]["content"] == said[3].value.text  # type: ignore[union-attr]
    assert "reasoning_content" in sent[2]
    assert [] == refusals(referee)


def test_what_is_important_must_survive(store: SessionStore, referee: Referee) -> None:
    """A summary by hand that lost it is refused and says what is missing; one from the log alone has it."""
    session = chatted(store, referee)
    session.annotate(session.log()[0].hash, Priority.IMPORTANT, retain=["a red fox", "quick brown"])
    with pytest.raises(CompactionRefused, match='"a red fox"; "quick brown"') as caught:
        session.compaction.run(text="They spoke.")
    assert {"missing": ["a red fox", "quick brown"]} == caught.value.details
    assert "manual" == checkpoint(session.compaction.run(text="A red  fox, quick Brown.", tail=3)).strategy
    assert "a red fox" in checkpoint(session.compaction.run("sliding_window", 1)).summary


def test_an_empty_summary_is_refused(store: SessionStore, referee: Referee) -> None:
    """By hand as by a model."""
    session = chatted(store, referee)
    with pytest.raises(CompactionRefused, match="the summary is empty"):
        session.compaction.run("manual", text=" ")


def test_what_makes_nothing_smaller_is_refused(store: SessionStore, referee: Referee) -> None:
    """With the figures; nothing is stored."""
    session = open_session(store, referee)
    for _ in range(3):
        session.chat("Hi")
    before = session.log()
    with pytest.raises(CompactionRefused, match="would hardly be smaller") as caught:
        session.compaction.run(text="x" * 5_000, tail=1)
    assert caught.value.details["before"] < caught.value.details["after"]  # type: ignore[operator]
    with pytest.raises(CompactionRefused, match="nothing new"):
        session.compaction.plan(tail=3)
    assert before == session.log()


def test_compaction_of_a_compaction(store: SessionStore, referee: Referee) -> None:
    """A later checkpoint stands for an earlier one too, as often as one likes."""
    session = chatted(store, referee)
    for number in range(3):
        session.compaction.run(tail=1)
        session.chat(f"next {number}: {LONG}")
        assert 4 == len(messages(referee))
    assert [] == refusals(referee)
    assert 3 == len(session.compaction.list())


def test_a_hook_may_refuse(store: SessionStore, referee: Referee) -> None:
    """It sees the checkpoint with its figures; nothing is stored."""
    session = chatted(store, referee)
    seen: list[Compaction] = []

    def veto(found: Compaction) -> None:
        seen.append(found)
        raise Veto("not on Sundays")

    session.on("pre_compact", veto)
    with pytest.raises(Veto, match="not on Sundays"):
        session.compaction.run(tail=1)
    assert [] == session.compaction.list()
    assert seen[0].after < seen[0].before


@pytest.mark.parametrize(
    "ask",
    [
        lambda session: session.compaction.plan("fold"),
        lambda session: session.compaction.plan(tail=-1),
        lambda session: session.compaction.run(tail=True),
        lambda session: session.compaction.plan("middle_out", head="2"),
        lambda session: session.compaction.run("tool_results", size=1.5),
    ],
)
def test_what_cannot_be_asked_for_is_refused(
    store: SessionStore, referee: Referee, ask: Callable[[Session], object]
) -> None:
    """The error names the argument."""
    with pytest.raises(SettingError):
        ask(open_session(store, referee))


def test_without_an_endpoint_the_last_request_says_where(store: SessionStore, referee: Referee) -> None:
    """So that a log can be compacted by whoever only has the log; without any request there is no size to compare."""
    chatted(store, referee, name="talk")
    alone = store.session("talk")
    assert 8 == len(alone.compaction.plan(tail=2).covered)
    assert "deterministic" == checkpoint(alone.compaction.run(tail=2)).strategy
    with pytest.raises(NotFoundError):
        store.session("empty").compaction.plan()


def test_requests_before_a_checkpoint_are_rebuilt_as_they_were(store: SessionStore, referee: Referee) -> None:
    """A checkpoint acts from where it stands on."""
    session = chatted(store, referee)
    request = next(commit for commit in reversed(session.log()) if commit.kind == "request")
    session.compaction.run(tail=1)
    assert referee.requests[-1].raw == bytes(rebuild(session.log(), request.hash))


def weather(city: str) -> str:
    """The weather of a city."""
    return f"{city}: rain. " * 100


@pytest.mark.filterwarnings("ignore:reasoning.effort = high is not sent:UserWarning")
@every_dialect
def test_every_dialect_takes_what_is_left(store: SessionStore, referee: Referee, place: Place) -> None:
    """With finished tool turns and their reasoning before, pinned calls behind the summary, and a new loop after it."""
    session = talk(store, referee, place)
    for number in range(5):
        session.chat(f"How is the weather in Oslo? {number}: {LONG}", tools=[weather])
    pinned = [commit for commit in session.log() if commit.kind == "tool_call"][1]
    session.annotate(pinned.hash, Priority.PINNED)
    plan = session.compaction.plan(tail=2)
    assert 1 == len(plan.kept)
    session.compaction.run(tail=2)
    session.chat("How is the weather in Rome?")
    session.compaction.run("tool_results", 1, size=50)
    session.chat("And in Bergen?")
    assert [] == refusals(referee)
    assert {200} == set(statuses(referee))


def test_bound_reasoning_is_dropped_visibly_and_only_between_turns(store: SessionStore, referee: Referee) -> None:
    """What is unbound is listed before, with the reason; in an open loop nothing is done at all."""
    session = talk(store, referee, OF["anthropic"])
    for number in range(4):
        session.chat(f"{number}: {LONG}")
    plan: CompactionPlan = session.compaction.plan(tail=2)
    assert plan.unbound
    assert all("prefix" in decision.reason for decision in plan.unbound)
    session.compaction.run(tail=2)
    reply = session.chat("How is the weather in Oslo?", tools=TOOLS)
    with pytest.raises(CompactionRefused, match="a turn is under way"):
        session.compaction.run(tail=1)
    session.generate({call.id: "rain" for call in reply.tool_calls})
    session.chat("Thanks.", tools=[])
    assert [] == refusals(referee)


# -- a model writes it -------------------------------------------------------------------------------------------------


def test_a_model_writes_the_summary(store: SessionStore, referee: Referee) -> None:
    """Through the same transport, without a trace in the history but the checkpoint; its use is kept with it."""
    session = chatted(store, referee)
    before = kinds(session)
    estimated = session.compaction.plan("model", 2)
    asked = len(referee.requests)
    referee.push(Step(text=written(decisions=["The dog sleeps."]), usage={"completion_tokens": 77}))
    made = checkpoint(session.compaction.run("model", 2))
    assert [*before, "compaction"] == kinds(session)
    assert (asked + 1, True) == (len(referee.requests), estimated.estimated)
    assert "They spoke of a fox.\n\nObjective:\n- More of it.\n\nDecisions:\n- The dog sleeps." == made.summary
    assert ("model", "deepseek/deepseek-v4-pro", "") == (made.strategy, made.model, made.note)
    assert made.usage is not None
    assert 77 == made.usage.output
    session.chat("Go on.")
    assert "The dog sleeps." in messages(referee)[0]["content"]
    assert [] == refusals(referee)


@pytest.mark.filterwarnings("ignore:reasoning.effort = .* is not sent:UserWarning")
@every_dialect
def test_a_model_of_every_dialect_can_write(store: SessionStore, referee: Referee, place: Place) -> None:
    """Asked for one shape as each of them can be asked."""
    session = talk(store, referee, place)
    for number in range(4):
        session.chat(f"{number}: {LONG}")
    referee.push(Step(text=written()))
    assert "model" == checkpoint(session.compaction.run("model", 1)).strategy
    session.chat("Go on.")
    assert [] == refusals(referee)


def test_where_nothing_about_reasoning_may_be_said_nothing_is(store: SessionStore, referee: Referee) -> None:
    """Not even that there should be little of it."""
    session = open_session(store, referee, "mistral", model="mistral-small-latest")
    session.set("reasoning.strict", True)
    for number in range(4):
        referee.push(Step(text=f"Noted. {LONG}"))
        session.chat(f"{number}: {LONG}")
    referee.push(Step(text=written()))
    assert "model" == checkpoint(session.compaction.run("model", 1)).strategy


def test_the_model_that_writes_gets_no_reasoning_and_nothing_skipped(store: SessionStore, referee: Referee) -> None:
    """It is told what is important, and to answer in one shape."""
    session = open_session(store, referee)
    referee.push(Step(reasoning="SECRET-THOUGHT", text="Blue. " + LONG))
    session.chat("Which colour? " + LONG)
    for number in range(4):
        referee.push(Step(text=f"Noted. {LONG}"))
        session.chat(f"{number}: {LONG}")
    said = [commit for commit in session.log() if commit.kind == "user"]
    session.annotate(said[1].hash, Priority.SKIP)
    session.annotate(said[2].hash, Priority.IMPORTANT, retain=["lazy dog"])
    referee.push(Step(text=written(risks=["lazy dog"])))
    session.compaction.run("model", 1)
    sent = json.dumps(referee.requests[-1].body)
    assert ("SECRET-THOUGHT" in sent, "0: Please keep" in sent) == (False, False)
    assert ("Which colour?" in sent, "lazy dog" in sent, "current_objective" in sent) == (True, True, True)


def test_an_answer_that_lost_something_is_asked_for_once_more(store: SessionStore, referee: Referee) -> None:
    """The model is told what is missing, and what it says then is taken."""
    session = chatted(store, referee)
    session.annotate(session.log()[0].hash, Priority.IMPORTANT, retain=["lazy dog"])
    referee.push(Step(text=written()), Step(text=written(summary="The lazy dog.")))
    made = checkpoint(session.compaction.run("model", 2))
    assert ("model", True) == (made.strategy, made.summary.startswith("The lazy dog."))
    assert '"lazy dog"' in messages(referee)[-1]["content"]
    assert made.usage is not None


@pytest.mark.parametrize("text", ["I would rather not.", written(summary=" "), written(summary="A cat.")])
def test_what_is_refused_twice_is_drawn_from_the_log(store: SessionStore, referee: Referee, text: str) -> None:
    """An answer in another shape, an empty one, or one that lost what must survive; the note says which."""
    session = chatted(store, referee)
    session.annotate(session.log()[0].hash, Priority.IMPORTANT, retain=["lazy dog"])
    referee.push(Step(text=text), Step(text=text))
    with pytest.warns(match="the summary is from the log alone: .* was refused twice"):
        made = checkpoint(session.compaction.run("model", 2))
    assert ("deterministic", "deepseek/deepseek-v4-pro") == (made.strategy, made.model)
    assert "refused twice" in made.note
    assert "lazy dog" in made.summary
    assert 0 == referee.unused


def test_a_host_that_knows_no_schema_is_asked_without(store: SessionStore, referee: Referee) -> None:
    """The words alone have to do; the transcript is not sent twice in one request."""
    session = chatted(store, referee)
    error = {"error": {"message": "This response_format type is unavailable now", "type": "invalid_request_error"}}
    referee.push(Step(fault=HttpError(400, error)), Step(text=written()))
    assert "model" == checkpoint(session.compaction.run("model", 2)).strategy
    first, second = referee.requests[-2:]
    assert ("response_format" in first.body, "response_format" in second.body) == (True, False)
    assert first.body["messages"] == second.body["messages"]


@pytest.mark.parametrize("status", [400, 500])
def test_a_model_that_cannot_be_reached_is_not_waited_for(store: SessionStore, referee: Referee, status: int) -> None:
    """The log alone has to do, and a note says so."""
    session = chatted(store, referee)
    fault = HttpError(status, {"error": {"message": "no such luck", "type": "x"}}, {"retry-after": "600"})
    referee.push(*[Step(fault=fault)] * 2)
    with pytest.warns(match="the summary is from the log alone: .* could not write the summary"):
        made = checkpoint(session.compaction.run("model", 2))
    assert ("deterministic", None) == (made.strategy, made.usage)
    assert "no such luck" in made.note


def test_a_summary_longer_than_what_it_stands_for_is_not_taken(store: SessionStore, referee: Referee) -> None:
    """The log alone has to do."""
    session = chatted(store, referee)
    referee.push(Step(text=written(summary="blah " * 5_000)))
    with pytest.warns(match="the summary is from the log alone: .* is no shorter"):
        made = checkpoint(session.compaction.run("model", 2))
    assert "deterministic" == made.strategy
    assert "no shorter" in made.note


@pytest.mark.parametrize("reads", [False, True])
def test_a_summary_reads_what_stands_in_thoughts_alone(store: SessionStore, referee: Referee, reads: bool) -> None:
    """Where ``compaction.rationale`` lets it; what is marked SKIP it never reads."""
    session = open_session(store, referee)
    for thought in ("The lock must be advisory: NFS.", "Never mind the old plan."):
        referee.push(Step(reasoning=thought, text="An advisory lock. " * 40))
        session.chat(f"Which lock? {LONG}")
    skipped = next(c for c in session.log() if getattr(c.value, "thought", "").startswith("Never"))
    session.annotate(skipped.hash, Priority.SKIP)
    chats = [session.chat(f"And then? {LONG}") for _ in range(2)]
    assert all(chat.state == "completed" for chat in chats)
    session.set("compaction.rationale", reads)
    referee.push(Step(text=written()))
    session.compaction.run("model", 1)
    asked = str(referee.requests[-1].body["messages"])
    assert reads == ("assistant thinks" in asked and "The lock must be advisory: NFS." in asked)
    assert "Never mind the old plan." not in asked


def test_a_checkpoint_that_saves_next_to_nothing_is_not_made(store: SessionStore, referee: Referee) -> None:
    """A few tokens of many are not worth what it leaves out."""
    session = chatted(store, referee)
    text = "".join(str(getattr(commit.value, "text", "")) for commit in session.log())
    with pytest.raises(CompactionRefused, match="would hardly be smaller"):
        session.compaction.run(text=text[: int(len(text) * 0.99)], tail=0)
    assert [] == session.compaction.list()


def test_another_model_can_write(store: SessionStore, referee: Referee) -> None:
    """As an argument, or as a setting that names a model or an endpoint with it."""
    session = chatted(store, referee)
    referee.push(Step(text=written()))
    session.compaction.run("model", 5, model="deepseek-v4-flash")
    session.set("compaction.model", "deepseek-v4-flash")
    referee.push(Step(text=written()))
    session.compaction.run("model", 4)
    assert ["deepseek-v4-flash"] * 2 == [exchange.model for exchange in referee.requests[-2:]]
    assert "deepseek-v4-pro" == session.target.model


def test_a_model_elsewhere_needs_its_own_key(
    store: SessionStore, referee: Referee, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key never goes to another host; an endpoint that does not exist is said before anything is asked."""
    monkeypatch.delenv("MOONSHOT_API_KEY", raising=False)
    session = chatted(store, referee)
    session.set("compaction.model", "kimi/kimi-k2.6")
    asked = len(referee.requests)
    with pytest.raises(CredentialError):
        session.compaction.run("model", 2)
    with pytest.raises(NotFoundError):
        session.compaction.run("model", 2, endpoint="nowhere", model="m")
    assert asked == len(referee.requests)


def test_a_log_alone_can_be_summarised_by_the_model_it_went_to(
    store: SessionStore, referee: Referee, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the key from where keys are found."""
    chatted(store, referee, name="talk")
    monkeypatch.setenv("DEEPSEEK_API_KEY", KEY)
    referee.push(Step(text=written()))
    assert "model" == checkpoint(store.session("talk").compaction.run("model", 2)).strategy


def test_the_same_with_asyncio(store: SessionStore, referee: Referee) -> None:
    """A summary by a model, and one from the log."""
    session = chatted(store, referee)
    fault = HttpError(400, {"error": {"message": "This response_format type is unavailable now", "type": "x"}})
    referee.push(Step(fault=fault), Step(text="no"), Step(text=written()))
    made = checkpoint(run(session.aio.compact("model", 3)))
    assert ("model", True) == (made.strategy, isinstance(made.usage, Usage))
    assert "deterministic" == checkpoint(run(session.aio.compact(tail=1))).strategy
    run(session.aio.chat("Go on."))
    assert [] == refusals(referee)


def test_a_running_turn_is_not_compacted(store: SessionStore, referee: Referee) -> None:
    """It ends first."""
    session = chatted(store, referee)
    stream = session.stream("How is the weather?", tools=[get_weather])
    next(iter(stream))
    session.compaction.run(tail=1)
    assert "interrupted" in kinds(session)


def test_checkpoints_are_on_disk(tmp_path: Any, referee: Referee) -> None:
    """Another process sees them, and goes on from them."""
    with thinkback.open(tmp_path / "log.db") as store:
        chatted(store, referee, name="talk").compaction.run(tail=1)
    with thinkback.open(tmp_path / "log.db") as store:
        session = open_session(store, referee, name="talk")
        assert 1 == len(session.compaction.list())
        session.chat("Go on.")
        assert 4 == len(messages(referee))
        assert [] == store.fsck()
