"""Old thoughts in fewer words: said before, stored as edits, of use to the endpoint, or refused with the reason."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from tests.acceptance.hosts import LOOK, OF, every_dialect, talk
from tests.conformance.moves import TOOLS, Place
from tests.session.chats import kinds, messages, open_session, refusals, run
from thinkback import Priority
from thinkback.errors import CompactionRefused, CredentialError, ProviderError, ThinkbackError, Veto
from thinkback.log.thoughts import SYSTEM
from thinkback.model.commits import Commit, Compaction
from thinkback.session.session import Session
from thinkback.session.store import SessionStore
from thinkback_referee import HttpError, Referee, Step

THOUGHT = "The lock must be advisory, as the file may be on NFS, where a mandatory one is ignored. " * 8
SHORT = "Advisory lock: NFS ignores mandatory ones."
pytestmark = pytest.mark.filterwarnings("ignore:reasoning.effort = high is not sent:UserWarning")


def thinking(session: Session, referee: Referee, count: int = 4) -> Session:
    """The session with so many finished turns, each with a long thought and a short answer."""
    for number in range(count):
        referee.push(Step(reasoning=f"{number}: {THOUGHT}", text=f"Answer {number}."))
        session.chat(f"Question {number}?")
    return session


def learn(store: SessionStore, referee: Referee, *shorter: str) -> None:
    """Let the referee take ``shorter`` forms of the first thoughts: it can tell what is not its own, hosts not."""
    twin = open_session(store, referee, "kimi", "twin")
    for number, text in enumerate(shorter):
        referee.push(Step(reasoning=text, text=f"Answer {number}."))
        twin.chat("And?")


def forms(*texts: str) -> str:
    """What a model answers that is to shorten notes."""
    return json.dumps({"notes": [{"number": at, "text": text} for at, text in enumerate(texts, 1)]})


def thoughts(session: Session) -> list[Commit]:
    """The commits of thoughts as they were made."""
    return [commit for commit in session.log() if commit.kind == "reasoning" and not commit.edit]


def sent_thoughts(referee: Referee) -> list[str]:
    """What the last request has in ``reasoning_content``."""
    return [message["reasoning_content"] for message in messages(referee) if "reasoning_content" in message]


def payload(commit: Commit) -> Compaction:
    """The payload of a compaction."""
    assert isinstance(commit.value, Compaction)
    return commit.value


def test_old_thoughts_go_shorter_and_answers_as_they_were(store: SessionStore, referee: Referee) -> None:
    """By edits of the thoughts, recorded with the use of the call; the last turns stay, and all is in the log."""
    session = thinking(open_session(store, referee, "kimi"), referee)
    before, answers = session.log(), [m["content"] for m in messages(referee)]
    referee.push(Step(text=forms(SHORT, f"{SHORT} Again."), usage={"completion_tokens": 77}))
    made = session.compaction.run("thoughts", 2, reason="they are long")
    asked = messages(referee)
    assert SYSTEM == asked[0]["content"]
    assert f"0: {THOUGHT}".strip() in asked[-1]["content"]
    assert "Question 0?" not in str(asked)
    assert before == session.log()[: len(before)]
    assert ["compaction", "reasoning", "reasoning"] == kinds(session)[len(before) :]
    old = thoughts(session)
    assert [each.hash for each in old[:2]] == [commit.edit for commit in session.log()[-2:]]
    found = payload(made)
    assert ("thoughts", "kimi/kimi-k2.6", "they are long") == (found.strategy, found.model, found.reason)
    assert (tuple(each.hash for each in old[:2]), 77) == (found.shortened, found.usage.output if found.usage else 0)
    assert found.after < found.before
    assert "summary" in {step.kind for step in session.usage.steps()}
    learn(store, referee, SHORT, f"{SHORT} Again.")
    session.chat("Go on.")
    assert [SHORT, f"{SHORT} Again.", f"2: {THOUGHT}", f"3: {THOUGHT}"] == sent_thoughts(referee)
    assert answers == [m["content"] for m in messages(referee)][: len(answers)]
    assert [] == refusals(referee)
    assert [] == store.fsck()


def test_what_it_costs_is_said_before(store: SessionStore, referee: Referee) -> None:
    """How many thoughts, of how many tokens; nothing is asked and nothing stored by looking."""
    session = thinking(open_session(store, referee, "kimi"), referee)
    head, asked = session.log()[-1], len(referee.requests)
    plan = session.compaction.plan("thoughts", 1)
    assert (head, asked) == (session.log()[-1], len(referee.requests))
    assert (3, True, (), ()) == (len(plan.shortened), plan.estimated, plan.void, plan.unbound)
    before, after = plan.thought_tokens
    assert 0.3 < after / before < 0.4
    assert plan.after.effective < plan.before.effective


def test_why_names_the_edit_and_the_compaction_until_it_is_restored(store: SessionStore, referee: Referee) -> None:
    """And a restored thought goes back as it was made."""
    session = thinking(open_session(store, referee, "kimi"), referee, 3)
    referee.push(Step(text=forms(SHORT, SHORT)))
    made = session.compaction.run("thoughts", 1)
    first, second, _ = thoughts(session)
    edit = session.log()[-2]
    answer = next(commit for commit in session.log() if commit.kind == "assistant")
    said = f"edited by commit {edit.hash[:12]}, made by compaction {made.hash[:12]}"
    assert {first.hash: said} == session.why(first.hash).edited == session.why(answer.hash).edited
    session.restore(first.hash)
    assert f"edited by commit {session.log()[-1].hash[:12]}" == session.why(first.hash).edited[first.hash]
    session.commit("By hand.", edit=second.hash)
    assert "compaction" not in session.why(second.hash).edited[second.hash]
    learn(store, referee, f"0: {THOUGHT}", "By hand.")
    session.chat("Go on.")
    assert [f"0: {THOUGHT}".strip(), "By hand."] == [text.strip() for text in sent_thoughts(referee)[:2]]


@every_dialect
def test_where_no_shorter_thought_goes_back_it_is_refused(store: SessionStore, referee: Referee, place: Place) -> None:
    """By name and before anything is asked: where thoughts go as they were made, or not at all."""
    session = thinking(talk(store, referee, place), referee)
    before, asked = session.log(), len(referee.requests)
    with pytest.raises(CompactionRefused, match="of no use at") as caught:
        session.compaction.run("thoughts", 1)
    assert place.model == caught.value.details["model"]
    assert (before, asked) == (session.log(), len(referee.requests))


def test_thoughts_that_do_not_go_back_until_they_are_wanted(store: SessionStore, referee: Referee) -> None:
    """The error has the reason; with the setting they do, and can be shortened."""
    session = thinking(open_session(store, referee), referee)
    with pytest.raises(CompactionRefused, match=r"goes back \(.*includeInContext"):
        session.compaction.plan("thoughts", 1)
    session.set("reasoning.includeInContext", True)
    assert 3 == len(session.compaction.plan("thoughts", 1).shortened)


def test_required_thoughts_are_not_shortened(store: SessionStore, referee: Referee) -> None:
    """What the endpoint demands back goes as it was made, so the others alone are shortened."""
    session = open_session(store, referee)
    session.set("reasoning.includeInContext", True)
    referee.push(Step(reasoning=THOUGHT, tool_calls=[LOOK]))
    reply = session.chat("How is the weather?", tools=TOOLS)
    with pytest.raises(CompactionRefused, match="a turn is under way"):
        session.compaction.plan("thoughts", 0)
    session.generate({call.id: "rain" for call in reply.tool_calls})
    thinking(session, referee, 2)
    old = [each.hash for each in thoughts(session)]
    shortened = session.compaction.plan("thoughts", 1).shortened
    assert set(shortened) < set(old)
    decisions = {each.block: each for each in session.why(next=True)}
    assert not any("requires" in decisions[hash].reason for hash in shortened)


def test_a_form_that_is_hardly_shorter_is_not_kept(store: SessionStore, referee: Referee) -> None:
    """The others are; the note says how many were not. If none is left, nothing is stored."""
    session = thinking(open_session(store, referee, "kimi"), referee, 3)
    before = session.log()
    full = f"1: {THOUGHT}"
    referee.push(Step(text=forms(full[:-4], full)))
    with pytest.raises(CompactionRefused, match="hardly shorter than the thoughts"):
        session.compaction.run("thoughts", 1)
    assert before == session.log()
    referee.push(Step(text=forms(SHORT, full[: int(len(full) * 0.97)])))
    made = payload(session.compaction.run("thoughts", 1))
    assert ((thoughts(session)[0].hash,), 1) == (made.shortened, len(session.log()) - len(before) - 1)
    assert "1 of 2 forms" in made.note


def test_what_gains_next_to_nothing_is_refused(store: SessionStore, referee: Referee) -> None:
    """Before anything is asked, where thoughts are a small part of the request; or after, if the forms are long."""
    session = thinking(open_session(store, referee, "kimi"), referee, 2)
    session.chat("long " * 20_000)
    asked, before = len(referee.requests), session.log()
    with pytest.raises(CompactionRefused, match="would hardly be smaller"):
        session.compaction.run("thoughts", 1)
    assert (asked, before) == (len(referee.requests), session.log())


@pytest.mark.parametrize(
    "answers", [["I would rather not."] * 2, [forms(SHORT)] * 2, [forms(SHORT, " "), forms(SHORT, SHORT, SHORT)]]
)
def test_an_answer_that_cannot_be_used_is_an_error(
    store: SessionStore, referee: Referee, answers: Sequence[str]
) -> None:
    """Asked twice; nothing is stored and the log alone does not stand in."""
    session = thinking(open_session(store, referee, "kimi"), referee, 3)
    before = session.log()
    referee.push(*[Step(text=text) for text in answers])
    with pytest.raises(CompactionRefused, match="cannot be used, asked twice"):
        session.compaction.run("thoughts", 1)
    assert (before, 0) == (session.log(), referee.unused)


def test_an_answer_that_was_put_right_is_taken(store: SessionStore, referee: Referee) -> None:
    """The use of both requests is recorded."""
    session = thinking(open_session(store, referee, "kimi"), referee, 3)
    referee.push(Step(text="no", usage={"completion_tokens": 5}))
    referee.push(Step(text=forms(SHORT, SHORT), usage={"completion_tokens": 6}))
    usage = payload(session.compaction.run("thoughts", 1)).usage
    assert usage is not None
    assert 11 == usage.output


def test_a_request_that_fails_is_an_error(store: SessionStore, referee: Referee) -> None:
    """With the provider's words; nothing is stored."""
    session = thinking(open_session(store, referee, "kimi"), referee, 3)
    before = session.log()
    fault = HttpError(401, {"error": {"message": "no such luck", "type": "x"}})
    referee.push(Step(fault=fault))
    with pytest.raises(ProviderError, match="no such luck"):
        session.compaction.run("thoughts", 1)
    assert before == session.log()


def test_a_model_elsewhere_needs_its_own_key(
    store: SessionStore, referee: Referee, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Said before anything is asked."""
    monkeypatch.delenv("DEEPSEEK_API_KEY", raising=False)
    session = thinking(open_session(store, referee, "kimi"), referee, 3)
    asked = len(referee.requests)
    with pytest.raises(CredentialError):
        session.compaction.run("thoughts", 1, endpoint="deepseek", model="deepseek-v4-pro")
    assert asked == len(referee.requests)


def test_carriers_that_become_void_are_named_before(store: SessionStore, referee: Referee) -> None:
    """Of thoughts that another endpoint signed: it would get them back, and does not any more."""
    session = thinking(talk(store, referee, OF["anthropic"]), referee, 3)
    away = open_session(store, referee, "deepseek", "talk")
    away.set("reasoning.foreign", "text")
    plan = away.compaction.plan("thoughts", 1)
    assert [(each.hash, "signature") for each in thoughts(session)[:2]] == [tuple(void) for void in plan.void]
    referee.push(Step(text=forms(SHORT, SHORT)))
    with pytest.warns(match="shortening 2 thoughts voids opaque values: signature of"):
        away.compaction.run("thoughts", 1)


def test_what_was_shortened_or_marked_is_left_alone(store: SessionStore, referee: Referee) -> None:
    """Nothing is said twice in fewer words; a restored thought may be."""
    session = thinking(open_session(store, referee, "kimi"), referee, 5)
    old = thoughts(session)
    answer = next(commit for commit in session.log() if commit.kind == "assistant")
    session.annotate(answer.hash, Priority.PINNED)
    session.annotate(old[1].hash, Priority.IMPORTANT)
    long = THOUGHT[: len(THOUGHT) // 2]
    referee.push(Step(text=forms(long, long)))
    made = payload(session.compaction.run("thoughts", 1))
    assert (old[2].hash, old[3].hash) == made.shortened
    with pytest.raises(CompactionRefused, match="there is no thought to shorten"):
        session.compaction.plan("thoughts", 1)
    session.restore(old[3].hash)
    assert (old[3].hash,) == session.compaction.plan("thoughts", 1).shortened


def test_a_hook_may_refuse(store: SessionStore, referee: Referee) -> None:
    """Then nothing is stored, the edits neither."""
    session = thinking(open_session(store, referee, "kimi"), referee, 3)
    before = session.log()

    def veto(found: Compaction) -> None:
        raise Veto(f"not {len(found.shortened)}")

    session.on("pre_compact", veto)
    referee.push(Step(text=forms(SHORT, SHORT)))
    with pytest.raises(Veto, match="not 2"):
        session.compaction.run("thoughts", 1)
    assert before == session.log()


def test_many_thoughts_are_asked_for_in_several_requests(
    store: SessionStore, referee: Referee, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many as the writer's context takes; all of them are one step. If the second fails, nothing is stored."""
    session = open_session(store, referee, "kimi")
    for number in range(3):
        referee.push(Step(reasoning=f"{number}: {'thought ' * 40_000}", text="Yes."))
        session.chat("And?")
    before, asked = session.log(), len(referee.requests)
    referee.push(Step(text=forms(SHORT)), Step(text="no"), Step(text="no"))
    with pytest.raises(ThinkbackError, match="cannot be used"):
        session.compaction.run("thoughts", 0)
    assert before == session.log()
    done: list[tuple[int, int | None]] = []
    referee.push(*[Step(text=forms(SHORT)) for _ in range(3)])
    session.compaction.run("thoughts", 0, progress=lambda at, of, what: done.append((at, of)))
    assert (asked + 6, 4) == (len(referee.requests), len(session.log()) - len(before))
    assert (3, 3) == done[-1]


def test_the_same_with_asyncio(store: SessionStore, referee: Referee) -> None:
    """The forms are stored; an answer that cannot be used is an error there too."""
    session = thinking(open_session(store, referee, "kimi"), referee, 3)
    before = session.log()
    referee.push(Step(text="no"), Step(text="no"))
    with pytest.raises(CompactionRefused, match="cannot be used, asked twice"):
        run(session.aio.compact("thoughts", 1))
    assert before == session.log()
    fault = HttpError(400, {"error": {"message": "This response_format type is unavailable now", "type": "x"}})
    referee.push(Step(fault=fault), Step(text=forms(SHORT, SHORT)))
    assert 2 == len(payload(run(session.aio.compact("thoughts", 1))).shortened)
    learn(store, referee, SHORT, SHORT)
    run(session.aio.chat("Go on."))
    assert [SHORT, SHORT] == sent_thoughts(referee)[:2]
    assert [] == refusals(referee)
