"""Repair: a refusal about reasoning is answered by touching less and less of it, at most three times."""

from __future__ import annotations

import re

import msgspec
import pytest

from tests.turn.playbook import (
    ANSWER,
    Playbook,
    answers,
    begins,
    commits_of,
    ends,
    gives,
    keeps,
    refuses,
    rule,
    runs,
    said,
    sends,
    target,
)
from thinkback.errors import ProviderError
from thinkback.model.blocks import Origin, Text, ThinkingBlock
from thinkback.model.commits import Content, Draft, Message, Repair, Response, TurnEnded
from thinkback.model.rule import Controls, Guard, Rule, Switch
from thinkback.model.target import Settings, Target
from thinkback.turn.plan import History, Plan

HOME = Origin("openai-chat", "https://house.example/v1", "thinker")
COUSIN = Origin("openai-chat", "https://house.example/v1", "cousin")
MISSING = "The reasoning_content in the thinking mode must be passed back to the API."
FAULTY = "Invalid signature in messages[{}]"
DROPPABLE = rule(server_drop=Switch(params={"drop_invalid": True}), guard=Guard(reads=("cousin", "thinker")))
READS = rule(guard=Guard(reads=("cousin", "thinker")))


def turn(name: str, origin: Origin = HOME) -> list[Draft]:
    """A finished turn whose response is called ``name`` and thought ``name``."""
    return [
        Draft("user", Message(f"{name}?")),
        Draft("response", Response(origin, content="text", blocks=2), name),
        Draft("reasoning", ThinkingBlock(f"Thought {name}.", source_field="reasoning_content"), name, 0),
        Draft("assistant", Text(f"Answer {name}."), name, 1),
        Draft("turn_ended", TurnEnded("completed")),
    ]


def playbook(*turns: list[Draft], at: Target | None = None) -> Playbook:
    """A question behind ``turns``, sent."""
    log = [draft for one in turns for draft in one]
    return Playbook("Next?", log=log, at=at or target(READS)) >> begins << keeps("user") << sends


def test_restore_demands_reasoning_on_every_message() -> None:
    """Where the endpoint misses reasoning, what there is goes back, and a placeholder where there is none."""
    forgetful = rule(open_turn="may", later="may", missing=("placeholder",))
    play = playbook(turn("a"), turn("b"), at=target(forgetful))
    assert [None, None] == play.reasoning()
    play >> refuses(400, MISSING) << keeps("request repair:restore") << sends
    assert ["Thought a.", "Thought b."] == play.reasoning()
    play >> answers(said("42", "Hm.")) << keeps(ANSWER) << ends("completed")
    assert ["sending", "repairing", "sending"] == play.statuses


def test_a_stand_in_that_is_refused_leads_to_the_next_step_of_the_rule() -> None:
    """Thinking is off rather than the conversation told as text, which is what comes last."""
    strict = rule(missing=("none", "placeholder", "thinking-off-for-this-turn"), thinking_off={"thinking": False})
    stranger = msgspec.structs.replace(HOME, endpoint="https://elsewhere.example/v1")
    play = playbook(turn("a", stranger), at=target(strict))
    play >> refuses(400, MISSING) << keeps("request repair:restore") << sends
    assert ([" "], None) == (play.reasoning(), play.plans[-1].params.get("thinking"))
    play >> refuses(400, MISSING) << keeps("request repair:restore") << sends
    assert ([None], False) == (play.reasoning(), play.plans[-1].params["thinking"])
    play >> refuses(400, MISSING) << keeps("request repair:flatten") << sends
    assert ["user"] * 3 == [role for role, _ in play.texts]


def test_a_rule_without_a_further_step_is_not_asked_for_one() -> None:
    """The placeholder was all there is: what is left is text, and the same is not sent again before."""
    stranger = msgspec.structs.replace(HOME, endpoint="https://elsewhere.example/v1")
    play = playbook(turn("a", stranger), at=target())
    play >> refuses(400, MISSING) << keeps("request repair:restore") << keeps("repair:flatten") << sends
    assert ["user"] * 3 == [role for role, _ in play.texts]


def test_server_side_switch_comes_before_anything_is_dropped() -> None:
    """An endpoint that can drop invalid blocks itself is asked to."""
    play = playbook(turn("a"), at=target(DROPPABLE))
    play >> refuses(400, "could not decrypt") << keeps("request repair:server_drop") << sends
    assert True is play.plans[-1].params["drop_invalid"]
    assert ["Thought a."] == play.reasoning()


def test_named_block_alone_is_dropped() -> None:
    """The endpoint names a message of its own making: only that one loses its reasoning."""
    play = playbook(turn("a"), turn("b"), turn("c"))
    play >> refuses(400, FAULTY.format(3)) << keeps("request repair:block") << sends
    assert ["Thought a.", " ", "Thought c."] == play.reasoning()


def test_named_block_of_a_stranger_takes_its_kin_along() -> None:
    """What another model minted fails for its origin: all of that origin goes."""
    play = playbook(turn("a", COUSIN), turn("b"), turn("c", COUSIN))
    play >> refuses(400, FAULTY.format(5)) << keeps("request repair:block") << sends
    assert [" ", "Thought b.", " "] == play.reasoning()


@pytest.mark.parametrize(
    "text",
    [
        "messages.3: invalid signature",
        "invalid signature, message at index 3",
        '{"loc":["body","messages",3,"assistant","reasoning"],"msg":"Extra inputs are not permitted"}',
    ],
)
def test_name_of_a_block_is_found(text: str) -> None:
    """Hosts write the index in several ways."""
    play = playbook(turn("a"), turn("b")) >> refuses(422, text) << keeps("request repair:block") << sends
    assert ["Thought a.", " "] == play.reasoning()


def test_index_of_another_message_names_nothing() -> None:
    """A refusal that points at a message without reasoning goes on to the next stage."""
    play = playbook(turn("a"), turn("b")) >> refuses(400, FAULTY.format(0)) << keeps("request repair:older_turns")
    play << sends


def test_each_repair_is_further_down_and_there_are_three() -> None:
    """Block, older turns, and last the conversation as text; then the provider's own words."""
    play = playbook(turn("a"), turn("b"), at=target(READS))
    play >> refuses(400, FAULTY.format(1)) << keeps("request repair:block") << sends
    assert [" ", "Thought b."] == play.reasoning()
    play >> refuses(400, FAULTY.format(3)) << keeps("request repair:older_turns") << sends
    assert [" ", " "] == play.reasoning()
    play >> refuses(400, FAULTY.format(3)) << keeps("request repair:flatten") << sends
    assert ["user"] * 5 == [role for role, _ in play.texts]
    play >> refuses(400, FAULTY.format(3)) << keeps("request failed") << ends("failed", ProviderError)
    assert play.outcome is not None
    assert "Invalid signature in messages[3]" in str(play.outcome.error)


def test_conversation_as_text_comes_last() -> None:
    """Inside an open tool loop the older turns go first, then everything is told, with the results of calls."""
    play = Playbook("Next?", log=turn("a"), at=target(READS), runnable=frozenset({"look"})) >> begins << keeps("user")
    play << sends >> answers(said("", "Loop.", "look-1")) << keeps("request response reasoning tool_call")
    play << runs("look") >> gives("look-1") << keeps("result") << sends
    assert ["Thought a.", "Loop."] == play.reasoning()
    play >> refuses(400, MISSING) << keeps("request repair:restore") << sends
    play >> refuses(400, MISSING) << keeps("request repair:older_turns") << sends
    assert [" ", "Loop."] == play.reasoning()
    play >> refuses(400, MISSING) << keeps("request repair:flatten") << sends
    assert ["user"] * 4 == [role for role, _ in play.texts]
    assert "look-1" not in str(play.texts)
    assert "(It called look with {}, and the result was:)\ndone" in play.texts[-1][1]
    play >> answers(said("43", "Hm.")) << keeps(ANSWER) << ends("completed")


def test_what_was_said_after_the_last_repair_goes_as_it_is() -> None:
    """Text stays text as long as the target is the same; what is answered from there on is not touched."""
    play = playbook(turn("a")) >> refuses(400, "invalid signature") << keeps("request repair:older_turns") << sends
    play >> refuses(400, "invalid signature") << keeps("request repair:flatten") << sends
    play >> answers(said("42", "Hm.")) << keeps(ANSWER) << ends("completed")
    again = Playbook("Again?", history=play.history, at=target(READS)) >> begins << keeps("user") << sends
    assert ["user", "user", "user", "assistant", "user"] == [role for role, _ in again.texts]
    assert ["Hm."] == again.reasoning()


def test_older_turns_are_passed_over_where_the_refusal_names_the_turn_under_way() -> None:
    """What helps is taken first: the fault is not in them."""
    play = Playbook("Next?", log=turn("a"), at=target(READS), runnable=frozenset({"look"})) >> begins << keeps("user")
    play << sends >> answers(said("", "Loop.", "look-1")) << keeps("request response reasoning tool_call")
    play << runs("look") >> gives("look-1") << keeps("result") << sends
    play >> refuses(400, FAULTY.format(3)) << keeps("request repair:block") << sends
    play >> refuses(400, FAULTY.format(3)) << keeps("request repair:all") << sends
    play >> refuses(400, FAULTY.format(3)) << keeps("request repair:flatten") << sends


def test_words_of_a_person_in_the_assistants_mouth_are_told_too() -> None:
    """Nobody can say that a refusal is not about them."""
    by_hand = [
        Draft("user", Message("a?")),
        Draft("assistant", Text("By hand.")),
        Draft("turn_ended", TurnEnded("completed")),
    ]
    content = Draft("content", Content("note", "Noted.", role="assistant"))
    play = playbook([*by_hand, content]) >> refuses(400, MISSING)
    play << keeps("request repair:restore") << keeps("repair:flatten") << sends
    assert {"user"} == {role for role, _ in play.texts}


def test_three_repairs_are_the_limit() -> None:
    """A fourth stage is not tried."""
    play = playbook(turn("a"), turn("b"), at=target(DROPPABLE))
    play >> refuses(400, MISSING) << keeps("request repair:restore") << sends
    play >> refuses(400, MISSING) << keeps("request repair:server_drop") << sends
    play >> refuses(400, FAULTY.format(1)) << keeps("request repair:flatten") << sends
    play >> refuses(400, FAULTY.format(3)) << keeps("request failed") << ends("failed", ProviderError)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (400, "max_tokens is too large"),
        (400, "context length exceeded"),
        (422, "seed: Extra inputs are not permitted"),
        (404, MISSING),
        (401, "invalid signature"),
    ],
)
def test_refusal_that_is_not_about_reasoning_is_not_repaired(code: int, text: str) -> None:
    """Another fault, or another status, is told as it is."""
    play = playbook(turn("a")) >> refuses(code, text) << keeps("request failed") << ends("failed", ProviderError)
    assert "repairing" not in play.statuses


def test_nothing_to_touch_is_no_repair() -> None:
    """Without any reasoning sent there is nothing to leave out."""
    play = playbook() >> refuses(400, "invalid signature") << keeps("request failed") << ends("failed", ProviderError)
    assert play.outcome is not None


def test_refused_placeholders_lead_to_text() -> None:
    """A placeholder is not reasoning that could be left out; without a message of the assistant none is demanded."""
    stranger = msgspec.structs.replace(HOME, endpoint="https://elsewhere.example/v1")
    play = playbook(turn("a", stranger), at=target())
    assert [" "] == play.reasoning()
    play >> refuses(400, "invalid signature") << keeps("request repair:flatten") << sends
    assert ["user"] * 3 == [role for role, _ in play.texts]


@pytest.mark.parametrize(
    "text",
    [
        "property 'reasoning_content' is unsupported",
        "Unrecognized request argument: messages[1].reasoning",
        "reasoning_content: Extra inputs are not permitted",
        "Invalid `signature` in `thinking` block",
        "Could not decrypt the provided encrypted_content",
        "Corrupted thought signature",
    ],
)
def test_known_texts_are_recognised(text: str) -> None:
    """The words of hosts that share them."""
    play = playbook(turn("a")) >> refuses(400, text)
    play << keeps("request repair:block" if "[1]" in text else "request repair:older_turns") << sends


def test_words_of_the_rule_row_are_recognised() -> None:
    """A host's own text is data."""
    own: Rule = rule(refusals=(r"thoughts? not welcome",))
    play = playbook(turn("a"), at=target(own)) >> refuses(400, "Thoughts not welcome here")
    play << keeps("request repair:older_turns") << sends


def test_words_that_a_router_passes_on_are_recognised() -> None:
    """The provider behind a router speaks through its metadata."""
    body = b'{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"invalid signature"}}}'
    play = playbook(turn("a")) >> answers(body, code=400, kind="application/json")
    play << keeps("request repair:older_turns") << sends


def test_repair_holds_until_the_target_differs() -> None:
    """The next turn leaves out what was refused here; another model may get it."""
    play = playbook(turn("a"), turn("b")) >> refuses(400, FAULTY.format(1)) << keeps("request repair:block") << sends
    play >> answers(said("42", "Hm.")) << keeps(ANSWER) << ends("completed")
    same = Playbook("Again?", history=play.history, at=target(READS)) >> begins << keeps("user") << sends
    assert [" ", "Thought b.", "Hm."] == same.reasoning()
    other = Playbook("Again?", history=play.history, at=target(READS, "cousin")) >> begins
    other << keeps("interrupted user") << sends
    assert ["Thought a.", "Thought b.", "Hm."] == other.reasoning()


def test_what_holds_already_is_not_tried_again() -> None:
    """In a later turn a stage that holds for the target is passed over: it would send the same bytes."""
    play = playbook(turn("a")) >> refuses(400, MISSING) << keeps("request repair:restore") << sends
    play >> answers(said("42", "Hm.")) << keeps(ANSWER) << ends("completed")
    later = Playbook("Again?", history=play.history, at=target(READS)) >> begins << keeps("user") << sends
    later >> refuses(400, MISSING) << keeps("request repair:older_turns") << sends


def test_repairs_are_counted_across_turn_objects() -> None:
    """What was tried is read from the log: a second machine over the same open turn does not begin anew."""
    repaired = [
        Draft("repair", Repair(stage, (), MISSING, "https://house.example/v1", "thinker"))
        for stage in ("restore", "older_turns")
    ]
    log = [*turn("a"), Draft("user", Message("Next?")), *repaired]
    play = Playbook(None, log=log, at=target(READS)) >> begins << sends >> refuses(400, MISSING)
    play << keeps("request repair:flatten") << sends
    elsewhere = msgspec.structs.replace(HOME, endpoint="https://elsewhere.example/v1")
    log[-1] = Draft("repair", Repair("all", (), MISSING, elsewhere.endpoint, "thinker"))
    (
        Playbook(None, log=log, at=target(READS))
        >> begins
        << sends
        >> refuses(400, MISSING)
        << keeps("request repair:older_turns")
    )


def test_history_without_a_question_is_repaired_too() -> None:
    """An adopted history may begin with an answer."""
    play = Playbook(None, log=turn("a")[1:4], at=target(READS)) >> begins << sends
    play >> refuses(400, FAULTY.format(0)) << keeps("request repair:block") << sends


def test_repair_names_the_blocks() -> None:
    """The commit holds the hashes of what is void from here on, and the provider's words."""
    play = playbook(turn("a")) >> refuses(400, FAULTY.format(1)) << keeps("request repair:block") << sends
    repair = next(commit.value for commit in play.history.commits if isinstance(commit.value, Repair))
    assert (play.history.commits[2].hash,) == repair.blocks
    assert re.match("Invalid signature", repair.refusal)


def test_older_turns_are_those_before_the_last_question() -> None:
    """Also where messages were adopted, and stand in the bytes of whoever wrote them."""
    adopted = Draft("user", Message("b?", wire='{"content":"b?","role":"user"}'))
    play = playbook(turn("a"), [adopted, *turn("b")[1:]]) >> refuses(400, "invalid signature")
    play << keeps("request repair:older_turns") << sends
    assert [" ", " "] == play.reasoning()


def test_refused_request_is_on_record() -> None:
    """``why`` finds what was sent before the repair, too."""
    play = playbook(turn("a")) >> refuses(400, FAULTY.format(1)) << keeps("request repair:block") << sends
    history = History(commits_of([Draft(c.kind, c.value, c.response, c.index) for c in play.history.commits]))
    assert ["request", "repair"] == [commit.kind for commit in history.commits[-2:]]


@pytest.mark.parametrize(("code", "message"), [(400, "not for you"), (422, "no such parameter")])
def test_what_only_the_settings_asked_for_is_left_out_when_it_is_refused(code: int, message: str) -> None:
    """Whatever the words of the refusal; the host hears them when the next request is to be built."""
    play = _readable([True, False])
    play >> begins << keeps("user") << sends >> refuses(code, message) << keeps("request") << sends
    assert ["", message] == play.plain
    play >> answers(said("42", "Hm.")) << keeps(ANSWER) << ends("completed")
    assert ["sending", "repairing", "sending"] == play.statuses


def test_a_host_that_asks_for_it_again_is_refused_once() -> None:
    """The same request is not sent a second time."""
    play = _readable([True, True])
    play >> begins << keeps("user") << sends >> refuses(400) << keeps("request") << keeps("failed")
    play << ends("failed", ProviderError)


@pytest.mark.parametrize(("readable", "code"), [(True, 401), (True, 403), (False, 400)])
def test_nothing_is_left_out_of_what_was_asked_for(readable: bool, code: int) -> None:
    """Nor because a credential is refused."""
    play = _readable([readable])
    play >> begins << keeps("user") << sends >> refuses(code) << keeps("request failed")
    play << ends("failed", ProviderError)
    assert [""] == play.plain


def _readable(wanted: list[bool]) -> Playbook:
    """A turn whose requests ask for readable reasoning, or do not."""
    display = {"summarized": {"show": "yes"}, "omitted": {"show": "no"}}
    place = target(rule(controls=Controls(display=display)))

    def plan() -> Plan:
        settings = Settings(readable=wanted[len(play.plain) - 1])
        return play.history.plan(place, settings, None, {"stream": True})

    play = Playbook("Why?", at=place, plan=plan)
    return play
