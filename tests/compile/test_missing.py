"""What stands in for reasoning that is demanded and cannot be sent, and repairs (3.11)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.compile.build import (
    ELSEWHERE,
    HERE,
    URL,
    WRITER,
    Built,
    Talk,
    build,
    call,
    entry,
    rule,
    say,
    settings,
    signed_call,
    tagged,
    target,
    think,
)
from thinkback.compile import fold
from thinkback.errors import ReplayRefused
from thinkback.model.rule import Switch

FOREIGN = Talk(ELSEWHERE).turn("a").user("b")
NONE = Talk().turn("a", say("x")).user("b")
DEEP = {"open_turn": "must", "later": "must-after-tools", "placeholder": " ", "missing": ("placeholder",)}


@pytest.mark.parametrize("talk", [FOREIGN, NONE])
def test_placeholder(talk: Talk) -> None:
    """The rule's placeholder stands in for reasoning that may not be sent and for reasoning that never was."""
    row = rule(
        later="must", placeholder="-", missing=("placeholder", "thinking-off-for-this-turn"), also=("reasoning",)
    )
    built = build(talk, row)
    assert built.messages[1]["reasoning_content"] == built.messages[1]["reasoning"] == "-"
    decision = built.decisions[-1]
    assert ("placeholder", "", 1, 1) == (decision.action, decision.block, decision.message, decision.characters)


def test_placeholder_says_why() -> None:
    """The decision about a placeholder names what keeps the message's own reasoning away, or that there was none."""
    row = rule(later="must", placeholder=" ", missing=("placeholder",))
    assert build(FOREIGN, row).reasons[-1] == (
        "the endpoint demands reasoning on this message; its own stays away: "
        "minted by https://other.example/v1, target is https://api.example.com/v1"
    )
    assert build(NONE, row).reasons == [
        "the endpoint demands reasoning on this message; the response brought none that can go back"
    ]


def test_a_marker_is_no_lost_reasoning() -> None:
    """A response whose reasoning is only a marker brought none: nothing is lost, nothing is refused."""
    talk = Talk().turn("a", think("Thinking...", marker=True), say("x")).user("b")
    assert build(talk, rule(later="must")).fields == [None]


@pytest.mark.parametrize(
    ("on", "tools", "expected"),
    [
        ("never", True, [None, None]),
        ("tool-calls", False, [" ", None]),
        ("with-tools", False, [None, None]),
        ("with-tools", True, [" ", " "]),
        ("all", False, [" ", " "]),
    ],
)
def test_placeholder_on(on: Any, tools: bool, expected: list[str | None]) -> None:
    """``placeholder_on`` says which messages need something: none, those with calls, all given tools, all."""
    talk = Talk().user("a").reply(call(), content="null").result().reply(say("x")).end().user("b")
    row = rule(later="may", placeholder=" ", placeholder_on=on, missing=("placeholder",))
    assert expected == build(talk, row, tools=tools).fields


@pytest.mark.parametrize(
    "wanted", [settings(include_in_context=False), settings(strip_from_context="all"), settings(keep_last=0)]
)
def test_only_what_is_required_stays(wanted: Any) -> None:
    """Where the field is demanded and the text is not, a setting against it leaves the placeholder."""
    row = rule(**DEEP, placeholder_on="with-tools")
    assert build(Talk().turn("a").user("b"), row, wanted, tools=True).fields == [" "]
    assert build(Talk().turn("a").user("b"), row, tools=True).fields == ["on a"]
    kimi = rule(scope="tool-calls", placeholder=" ", placeholder_on="tool-calls", missing=("placeholder",))
    loop = Talk().loop("a").reply(think("last"), say("x")).end().user("b")
    assert build(loop, kimi, wanted).fields == [" ", None]


def test_no_placeholder_while_thinking_is_off() -> None:
    """Without thinking nothing is demanded, so nothing stands in."""
    row = rule(later="must", placeholder=" ", placeholder_on="all", missing=("placeholder",), thinks_unless=({"t": 0},))
    assert build(FOREIGN, row, params={"t": 0}).fields == [None]


@pytest.mark.parametrize("form", ["tags", "details"])
def test_prose_does_not_fill_a_demand(form: Any) -> None:
    """Foreign reasoning told as prose leaves the field empty, so the placeholder stands in there."""
    row = rule(form=form, later="must", placeholder=" ", missing=("placeholder",))
    message = build(FOREIGN, row, settings(foreign="text")).messages[1]
    assert message["content"].startswith("(Earlier reasoning, by m9: on a)")
    assert message["reasoning_content"] == " "


def test_foreign_text_in_the_field_fills_it() -> None:
    """Foreign text in the field satisfies the demand."""
    row = rule(later="must", placeholder=" ", missing=("placeholder",))
    assert build(FOREIGN, row, settings(foreign="text")).fields == ["on a"]


def test_thinking_off_for_this_turn() -> None:
    """Where no placeholder is allowed thinking is switched off, and the switch for retention stays away."""
    off = {"thinking": {"type": "disabled"}}
    row = rule(
        later="must",
        missing=("thinking-off-for-this-turn",),
        thinking_off=off,
        keep_switch=Switch({"thinking": {"keep": "all"}}),
    )
    built = build(FOREIGN, row)
    assert built.params == off
    assert built.fields == [None]
    assert (built.decisions[-1].action, built.decisions[-1].block, built.decisions[-1].message) == ("drop", "", -1)
    assert built.reasons[-1].startswith("thinking is off for this turn: the endpoint demands reasoning; its own stays")
    assert build(Talk().turn("a").user("b"), row).params == {"thinking": {"keep": "all"}}


def test_thinking_stays_off_when_the_turn_is_settled() -> None:
    """As long as the message without reasoning is sent, thinking is off, however long ago its turn was."""
    row = rule(later="must", missing=("thinking-off-for-this-turn",), thinking_off={"off": True})
    talk = Talk().turn("a", origin=ELSEWHERE).turn("b").turn("c").turn("d").user("e")
    built = build(talk, row)
    assert built.state.settled == 3
    assert built.params == {"off": True}
    talk.reply(think("own"), say("x")).end()
    later = Built(fold.extend(built.state, talk.commits[-4:], WRITER))
    assert later.state.settled == 4
    assert later.params == {"off": True}


def test_none_sends_without() -> None:
    """``none`` sends the message without reasoning: the endpoint does not refuse it."""
    built = build(FOREIGN, rule(later="must", missing=("none", "placeholder"), placeholder=" "))
    assert built.fields == [None]
    assert built.actions == ["drop"]


def test_the_end_of_the_list_is_a_refusal() -> None:
    """When nothing may stand in, the request is refused before the network, with the block named."""
    with pytest.raises(ReplayRefused) as caught:
        build(FOREIGN, target(rule(later="must")))
    block = FOREIGN.hashes()[0]
    assert caught.value.message == (
        f"e demands the reasoning of block {block[:12]}, which may not be sent: "
        "minted by https://other.example/v1, target is https://api.example.com/v1"
    )
    assert caught.value.details == {"block": block, "rule": "r", "endpoint": "e", "model": "m1"}
    assert len(caught.value.next_actions) == 2


@pytest.mark.parametrize("row", [rule(later="must"), rule(placeholder_on="all", later="must")])
def test_reasoning_that_never_was_refuses_nothing(row: Any) -> None:
    """A response without reasoning is sent without where nothing may stand in: there is nothing to lose."""
    assert build(NONE, row).fields == [None]


def test_a_step_that_no_rule_needs_is_passed_over() -> None:
    """A demand for the field alone, whose steps are unknown to this version, sends without."""
    row = rule(later="may", placeholder=" ", placeholder_on="all", missing=("something-new",))
    assert build(NONE, row).fields == [None]


def test_restore_demands_everything_everywhere() -> None:
    """After ``restore`` every assistant message carries its reasoning or a placeholder, whatever else is said."""
    talk = Talk().turn("a").turn("b", say("x")).loop("c").repair("restore")
    row = rule(open_turn="never", later="never")
    assert build(talk, row, settings(include_in_context=False)).fields == ["on a", " ", "plan"]
    assert build(talk, row).reasons[0] == (
        "goes back in reasoning_content: the endpoint refused a request without it (rule r)"
    )


def test_restore_where_the_rule_says_nothing_goes_back() -> None:
    """An endpoint said to take nothing that then demanded it gets its own reasoning, under the name it came in."""
    talk = Talk().turn("a", think("own", "reasoning"), say("x")).turn("b", entry("kept"), say("y")).user("c")
    built = build(talk.repair("restore"), rule(form="none", open_turn="never", later="never"))
    assert built.messages[1]["reasoning"] == "own"
    assert built.messages[3]["reasoning_content"] == "kept"


def test_restore_outlives_none() -> None:
    """``none`` says that the endpoint does not refuse; once it did, the placeholder takes its place."""
    assert build(NONE, rule(missing=("none",))).fields == [None]
    talk = Talk().turn("a", say("x")).user("b").repair("restore")
    assert build(talk, rule(missing=("none",))).fields == [" "]
    assert build(talk, rule(missing=("none", "thinking-off-for-this-turn"), thinking_off={"o": 1})).params == {"o": 1}


def test_a_further_restore_takes_the_next_step() -> None:
    """What stood in was refused, too; behind the last step nothing follows."""
    row = rule(missing=("placeholder", "thinking-off-for-this-turn"), placeholder=" ", thinking_off={"o": 1})
    talk = Talk().turn("a", say("x")).user("b").repair("restore")
    assert (build(talk, row).fields, build(talk, row).params) == ([" "], {})
    for _ in range(2):
        built = build(talk.repair("restore"), row)
        assert (built.fields, built.params) == ([None], {"o": 1})


def test_server_drop_goes_into_the_parameters() -> None:
    """After ``server_drop`` the endpoint's own switch is in the request, where it has one."""
    row = rule(server_drop=Switch({"drop": True}))
    assert build(Talk().turn("a").repair("server_drop").user("b"), row).params == {"drop": True}
    assert build(Talk().turn("a").user("b"), row).params == {}
    assert build(Talk().turn("a").repair("server_drop").user("b"), rule()).params == {}


@pytest.mark.parametrize("stage", ["block", "older_turns", "all"])
def test_named_blocks_are_invalid(stage: str) -> None:
    """The blocks a repair names are not sent again, and no foreign setting brings their text back."""
    talk = Talk().turn("a").turn("b")
    talk.repair(stage, talk.hashes()[0]).user("c")
    built = build(talk, None, settings(foreign="text"))
    assert built.fields == [None, "on b"]
    assert built.reasons[0] == "a refused request named it invalid for this target"


def test_an_invalid_slice_of_content_is_cut_out() -> None:
    """Of two tagged pieces only the named one is cut out."""
    talk = Talk().turn("a", tagged("one"), tagged("two"), say("x"))
    talk.repair("block", talk.hashes()[0]).user("c")
    assert build(talk, rule(form="tags")).messages[1]["content"] == "<think>two</think>x"


def test_an_invalid_call_is_written_without_its_carrier() -> None:
    """A named call loses what it carries and stays a call."""
    talk = Talk().user("a").reply(signed_call()).result()
    talk.repair("block", *talk.hashes("tool_call"))
    built = build(talk)
    assert b"abc" not in built.body
    assert built.messages[1]["tool_calls"][0]["id"] == "c1"


@pytest.mark.parametrize(
    ("endpoint", "model", "holds"), [(URL, "m1", True), (URL, "m2", False), ("https://x.example", "m1", False)]
)
def test_a_repair_holds_until_the_target_differs(endpoint: str, model: str, holds: bool) -> None:
    """A repair is about one base URL and model; for any other target it is as if it were not there."""
    talk = Talk().turn("a")
    talk.repair("all", *talk.hashes(), endpoint=endpoint, model=model).user("b")
    assert [None if holds else "on a"] == build(talk).fields


def test_required_and_invalid() -> None:
    """A demanded block that a repair voids goes down the same list."""
    talk = Talk().turn("a")
    talk.repair("all", *talk.hashes()).user("b")
    assert build(talk, rule(later="must", placeholder=" ", missing=("placeholder",))).fields == [" "]
    with pytest.raises(ReplayRefused, match="named it invalid"):
        build(talk, rule(later="must"))


def test_added_params_of_a_fresh_state() -> None:
    """A conversation that has not begun adds nothing."""
    state, request = fold.request(fold.empty(build(Talk()).state.inputs), WRITER)
    assert fold.added(state.policy, request).params == {}
    assert HERE.endpoint == state.inputs.target.base_url
