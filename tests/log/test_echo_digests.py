"""What a client sees of a conversation: the same value for what is stored and for every echo of it."""

from __future__ import annotations

import hashlib
import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.log.build import Line
from tests.log.echoes import CHANGES, FRONTS, echoed, written
from thinkback.log.echo_digests import (
    chain,
    drafts_of,
    echoed_messages,
    message_starts,
    of_call,
    of_response,
    visible_calls,
    visible_text,
    windows,
)
from thinkback.model.blocks import Block, Media, Origin, Text, ThinkingBlock, ToolCall, ToolResult, Unknown
from thinkback.model.commits import Draft, Erased, Message, Response, TurnEnded, block_draft
from thinkback.model.think_tags import Edition, untagged

UPSTREAM = Origin("elsewhere", "https://api.example.com/v1", "reasoner")
PNG = Media("image/png", data="iVBORw0KGgo=")

words = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12
) | st.sampled_from(["Hello", "a\nb", "<think>", "</think>", "`<think>`", "4 < 5", " ", "\n\n", "[THINK]x[/THINK]"])
texts = st.lists(words, min_size=1, max_size=4).map("".join)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=5,
)
arguments = st.dictionaries(words, values, max_size=3).map(json.dumps) | st.sampled_from(["", "{}", "no json", "[1]"])
results = words | values.map(json.dumps)
said_by_user = texts.filter(lambda text: text.strip()).map(Message) | st.builds(
    lambda text: Message(text, (Text(text), PNG)), texts.filter(lambda text: text.strip())
)


@st.composite
def histories(draw: st.DrawFn) -> list[Draft]:
    """Turns of a user and a model, some of them with calls."""
    drafts: list[Draft] = []
    calls = itertools.count()
    for turn in range(draw(st.integers(1, 3))):
        drafts.append(Draft("user", draw(said_by_user)))
        for step in range(draw(st.integers(1, 2))):
            blocks: list[Block] = [ThinkingBlock("Hm.", source_field="reasoning_content")]
            blocks += [Text(text) for text in draw(st.lists(texts, min_size=1, max_size=2))]
            made = [
                ToolCall(f"call_{next(calls)}", draw(st.sampled_from(["look", "run"])), source)
                for source in draw(st.lists(arguments, max_size=2))
            ]
            id = f"response-{turn}-{step}"
            blocks += made
            drafts.append(Draft("response", Response(UPSTREAM, content="text", blocks=len(blocks)), id))
            drafts += [block_draft(block, id, at) for at, block in enumerate(blocks)]
            drafts += [Draft("tool_result", ToolResult(call.id, draw(results), call.name)) for call in made]
            if not made:
                break
    return drafts


@pytest.mark.parametrize("front", FRONTS)
@given(drafts=histories(), changes=st.sets(st.sampled_from(sorted(CHANGES))))
def test_an_echo_has_the_values_of_what_is_stored(front: str, drafts: list[Draft], changes: set[str]) -> None:
    """In every dialect of a client, whatever it changed of what was not its own."""
    body = written(drafts, front)
    # without ids only their order says what results are of; what is a tag beside a code span depends on the lines
    lost = {"ids"} if front == "gemini" and "results in another order" in changes else set()
    lost |= (
        {"white space"} if any("`" in draft.value.text for draft in drafts if isinstance(draft.value, Text)) else set()
    )
    for name, change in CHANGES.items():
        if name in changes - lost:
            change(body)
    stored = echoed_messages(drafts)
    assert [one.value for one in stored] == [one.value for one in echoed(body, front)]
    assert [one.at[0] for one in stored] == list(message_starts(drafts))


def test_digests_are_those_of_the_specification() -> None:
    """docs/format.md says how another program comes to them."""
    drafts = [
        Draft("system", Message("Be brief.")),
        Draft("user", Message(" Weather in\r\nOslo? ", (Text(" Weather in\r\nOslo? "), PNG))),
        Draft("response", Response(UPSTREAM), "r1"),
        Draft("reasoning", ThinkingBlock("Hm."), "r1", 0),
        Draft("assistant", Text("<think>Hm.</think>Let me see."), "r1", 1),
        Draft("tool_call", ToolCall("c1", "weather", '{ "b": 1.0, "a": [] }'), "r1", 2),
        Draft("tool_result", ToolResult("c1", '{"result": " 7 "}')),
    ]
    image = hashlib.sha256(b"iVBORw0KGgo").hexdigest()
    forms = [
        f'["user","Weather in\\nOslo?",["media","{image}"]]',
        '["assistant","Letmesee.",["weather","{\\"a\\":[],\\"b\\":1}"]]',
        '["tool",[0,"7"]]',
    ]
    expected = [hashlib.sha256(f"thinkback visible 1\n{form}".encode()).digest()[:16] for form in forms]
    seen = echoed_messages(drafts)
    assert expected == [one.value for one in seen]
    first = expected[0][:6] + hashlib.sha256(b"thinkback chain 1\n" + expected[0]).digest()[:10]
    second = expected[1][:6] + hashlib.sha256(b"thinkback chain 1\n" + first + expected[1]).digest()[:10]
    assert [first, second] == chain(expected[:2])
    five = [*expected, expected[0], expected[1]]
    window = hashlib.sha256(b"thinkback window 1\n" + b"".join(five[1:])).digest()
    assert expected[1][:6] + window[:10] == windows(five)[4]
    call = 'c1\nweather\n{"a":[],"b":1}'
    assert hashlib.sha256(f"thinkback call 1\n{call}".encode()).digest()[:16] == of_call(call)
    assert hashlib.sha256(b"thinkback response 1\nc1").digest()[:16] == of_response("c1")
    assert [((1,), ()), ((2, 3, 4, 5), (call,)), ((6,), ())] == [(one.at, one.calls) for one in seen]
    assert [(), ("r1",), ()] == [one.responses for one in seen]


def value_of(*drafts: Draft) -> list[bytes]:
    """The values of the messages in a history."""
    return [one.value for one in echoed_messages(drafts)]


def response(*blocks: Block, id: str = "r", complete: bool = True) -> list[Draft]:
    """A response with its blocks."""
    header = Response(UPSTREAM, complete=complete, blocks=len(blocks))
    return [Draft("response", header, id), *(block_draft(block, id, at) for at, block in enumerate(blocks))]


def result(content: str, id: str = "c1", name: str = "") -> Draft:
    """What a tool gave back."""
    return Draft("tool_result", ToolResult(id, content, name))


def test_what_nobody_sees_is_left_out() -> None:
    """System, tools and records, edits, responses that broke off, and those that say nothing."""
    seen = [Draft("user", Message("Hello")), *response(Text("Hi."))]
    hidden = [
        Draft("system", Message("Be brief.")),
        Draft("turn_ended", TurnEnded("completed")),
        *response(Text("cut o"), id="cut", complete=False),
        *response(ThinkingBlock("Hm."), Text(" "), Text("<think>only this</think>"), id="silent"),
        Draft("user", Message("Hello!"), edit="ab" * 32),
    ]
    mixed = [*hidden, seen[0], *hidden, *seen[1:], *hidden]
    assert value_of(*seen) == value_of(*mixed)
    assert [("r",)] == [one.responses for one in echoed_messages(mixed) if one.speaker == "assistant"]
    line = Line()
    line.add(*mixed[:-1])
    assert value_of(*seen) == value_of(*drafts_of(line.commits))


def test_neighbours_of_one_speaker_are_one_message() -> None:
    """A question in two messages, an answer in two responses; places and ids are those of all."""
    together = [Draft("user", Message("ab")), *response(Text("cd"))]
    apart = [
        Draft("user", Message("a")),
        Draft("user", Message("b")),
        *response(Text("c"), id="one"),
        *response(Text("d"), id="two"),
    ]
    assert value_of(*together) == value_of(*apart)
    assert [((0, 1), ()), ((2, 3, 4, 5), ("one", "two"))] == [(one.at, one.responses) for one in echoed_messages(apart)]


def test_messages_begin_where_their_first_draft_is() -> None:
    """Neighbours of one speaker are one message; a system message is none."""
    drafts = [Draft(kind, Message(kind)) for kind in ("system", "user", "user", "system")]
    drafts += [Draft("assistant", Text("Well.")), Draft("user", Message("Why?"))]
    assert [1, 4, 5] == list(message_starts(drafts))


def test_neighbours_are_one_message_however_their_tags_are_read() -> None:
    """Each reading of the one goes on with the same reading of the other, or with all it says."""
    plain, tagged = response(Text("one"), id="1"), response(Text("two <think>x</think> three"), id="2")

    assert [2, 2, 2] == [
        len(set(one.others))
        for pair in ((plain, tagged), (tagged, plain), (tagged, tagged))
        for one in echoed_messages([*pair[0], *pair[1]])
    ]


def test_what_a_person_wrote_down_for_the_model_is_a_message_too() -> None:
    """It belongs to no response."""
    by_hand = [Draft("assistant", Text("c")), Draft("assistant", Text("d"))]
    assert value_of(*response(Text("cd"))) == value_of(*by_hand)
    assert [()] == [one.responses for one in echoed_messages(by_hand)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Hello", "hello"),
        ("if x:\n  y", "if x:\n y"),
        ("a b", "ab"),
        ("1 2", "12"),
    ],
)
def test_a_user_is_taken_at_their_word(one: str, other: str) -> None:
    """White space inside a text is the user's own; around it and in ends of lines it is not."""
    assert value_of(Draft("user", Message(one))) != value_of(Draft("user", Message(other)))
    padded = "\n" + one.replace("\n", "\r\n") + " "
    assert value_of(Draft("user", Message(one))) == value_of(Draft("user", Message(padded)))


def test_parts_are_known_by_what_they_hold() -> None:
    """Media by data or address, however that is written; what is not understood by its JSON; an id by its part."""

    def of(*parts: Text | Media | Unknown) -> list[bytes]:
        return value_of(Draft("user", Message("", parts)))

    assert of(PNG) == of(Media("image/*", data="iVBORw0KGgo", name="a.png", wire='{"type":"image"}'))
    assert of(Media("a/b", data="-_8=")) == of(Media("a/b", data="+/8"))
    assert of(Media("a/b", url="https://a.example/1")) != of(Media("a/b", url="https://a.example/2"))
    marked = Unknown('{"type":"x","cache_control":{"type":"ephemeral"},"id":1}')
    assert of(marked) == of(Unknown('{ "id": 1, "type": "x" }')) != of(Unknown('{"id":2,"type":"x"}'))
    assert of(Media("a/b", wire='{"file_id":"1"}')) != of(Media("a/b", wire='{"file_id":"2"}'))
    assert of(Unknown("no json ")) == of(Unknown("no json"))
    assert of(Text("a"), PNG, Text("b")) != of(PNG, Text("ab"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (" 7 ", "7"),
        ('{"a": 1.0, "b": [2]}', '{"b":[2],"a":1}'),
        ("text", '[{"type":"text","text":"te"},{"type":"input_text","text":"xt","cache_control":{}}]'),
        ('{"a":1}', '[{"type":"text","text":"{\\"a\\": 1}"}]'),
        ("text", '{"result":"text"}'),
        ("no {json", '{"error":"no {json"}'),
        ("{no json", '{"output":"{no json "}'),
        ("[1, {}]", "[1,{}]"),
        ('[{"type":"image","data":"A"}]', '[{"type":"image","data":"A","cache_control":{}}]'),
        ('{"a":"\\ud83d"}', '{"a": "\\uD83D"}'),
        ('{"a":1e999}', '{"a":1e999} '),
    ],
)
def test_results_are_known_by_what_they_say(one: str, other: str) -> None:
    """Whatever stands around it, and however its JSON is written."""
    assert value_of(result(one)) == value_of(result(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("7", "8"),
        ('{"result":1}', "1"),
        ('{"result":"a","b":1}', "a"),
        ("[]", ""),
        ('[{"text":"a"}]', "a"),
        ("1.0", "1"),
    ],
)
def test_results_that_differ_are_not_the_same(one: str, other: str) -> None:
    """What may mean something else is something else."""
    assert value_of(result(one)) != value_of(result(other))


def test_results_go_with_their_calls() -> None:
    """In any order with ids, by name or in order without; two that were changed over are not the same."""
    called = response(ToolCall("1", "f", "{}"), ToolCall("2", "g", "{}"))
    nameless = response(ToolCall("", "f", "{}"), ToolCall("", "g", "{}"))
    expected = value_of(*called, result("a", "1"), result("b", "2"))
    assert expected == value_of(*called, result("b", "2"), result("a", "1"))
    assert expected != value_of(*called, result("a", "2"), result("b", "1"))
    assert expected == value_of(*nameless, result("a", ""), result("b", ""))
    assert expected == value_of(*nameless, result("b", "", "g"), result("a", "", "f"))
    assert expected != value_of(*called, result("a", "1"), result("b", "other"))
    assert value_of(*called, result("a", "1"), result("b", "1")) != expected


def test_what_was_erased_is_nothing_that_anybody_sends() -> None:
    """A tombstone has no text; what is left of a text is."""
    stone = Erased("asked to", 1)
    for kind in ("user", "tool_result"):
        assert value_of(Draft(kind, stone)) != value_of(Draft("user", Message("")))
    assert value_of(*response(Text("a"))) == value_of(
        *response(Text("a")), Draft("tool_call", stone, "r", 1), Draft("assistant", stone, "r", 2)
    )
    left = Erased("asked to", 1, '{"type":"text","text":"a"}')
    assert value_of(*response(Text("a"))) == value_of(*response(), Draft("assistant", left, "r", 0))


def test_half_characters_have_values() -> None:
    """Models send them; two halves in two places are one character."""
    assert value_of(*response(Text("\ud83d\ude00"))) == value_of(*response(Text("😀")))
    assert value_of(*response(Text("\ud83d"))) != value_of(*response(Text("\ude00")))
    assert of_call("\ud83d") != of_call("\ude00")
    assert of_call("\ud83d\ude00") == of_call("😀")


def test_calls_without_an_id_are_not_looked_for() -> None:
    """Any response may have them."""
    (one,) = echoed_messages(response(ToolCall("", "f", "{}"), ToolCall("1", "f", ' {"a": 2.0} ')))
    assert ('1\nf\n{"a":2}',) == one.calls


def test_text_is_without_tags_however_often_it_was_read() -> None:
    """Reading it once more changes nothing; a text of nothing but tags takes no longer than others."""
    for text in (
        "a</think>b <think>c</think> d",
        "</think>" * 5,
        "a</think>" * 40 + "x",
        "<th" * 9 + "<think></think>ink>" * 9,
    ):
        for edition in EDITIONS:
            assert untagged(text, edition=edition) == untagged(untagged(text, edition=edition), edition=edition)
        assert value_of(*response(Text(text))) == value_of(*response(Text(untagged(text, edition=1))))
    assert "" == untagged("</think>" * 5)
    assert "x" in untagged("</think>" * 20_000 + "x")


EDITIONS: tuple[Edition, ...] = (1, 2, 3)


def test_ten_thousand_messages_take_as_long_as_ten_thousand_times_one() -> None:
    """No step looks back at what came before it; told by what is made, not by a clock."""
    drafts = [draft for at in range(5_000) for draft in (Draft("user", Message(f"q{at}")), *response(Text(f"a{at}")))]
    messages = echoed_messages(drafts)
    assert 10_000 == len(messages) == len(chain([one.value for one in messages]))
    assert sum(len(one.at) for one in messages) == 15_000


def test_the_visible_text_of_an_answer_is_that_of_its_blocks() -> None:
    """Without white space, tagged reasoning and calls; what broke off is seen too."""
    header = Draft("response", Response(Origin("", "", ""), complete=False), "r")
    said = [block_draft(block, "r", at) for at, block in enumerate((Text("<think>x</think> It "), Text("is\n20")))]
    assert "Itis20" == visible_text([header, *said, Draft("user", Message("Why?"))])
    assert "" == visible_text([])


def test_the_calls_that_a_client_sees() -> None:
    """By name and arguments in one form, whatever ids they have; of a response that broke off, too."""
    header = Draft("response", Response(Origin("", "", ""), complete=False), "r")
    call = block_draft(ToolCall("c1", "f", '{ "a": 1 }'), "r", 1)

    assert [("f", '{"a":1}')] == visible_calls([header, block_draft(Text("so"), "r", 0), call])
