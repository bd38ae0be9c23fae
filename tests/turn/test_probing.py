"""Experiments on a host's demands, and the rule row that they imply."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.turn.probed_host import REFUSAL, THOUGHT, UNKNOWN, Host, error, place, strict, wants_tool
from thinkback.errors import ProviderError, RuleFileError, ThinkbackError
from thinkback.model.blocks import Carrier, ThinkingBlock
from thinkback.model.rule import Auth, Endpoint, Rule
from thinkback.rules.files import RuleFile, check, read
from thinkback.turn.probing import conversation, toml
from thinkback.turn.probing.conversation import Answer, limits
from thinkback.turn.probing.edits import edited
from thinkback.turn.probing.experiments import Ask, most
from thinkback.turn.probing.findings import Findings
from thinkback.turn.probing.row import Probed, conclude, pattern_of
from thinkback.wire.registry import PACKAGES

DAY = "2026-11-21"
SIGNATURE = "c2lnbmF0dXJlIG9mIGEgdGVzdA=="


def row(host: Host, like: Rule = UNKNOWN) -> Probed:
    """What a probe of ``host`` implies."""
    return conclude(host.probe(), like, "probed", "house", "thinker", DAY)


def keys(probed: Probed) -> dict[str, Any]:
    return {key.name: key.value for key in probed.keys}


# -- what is sent ------------------------------------------------------------------------------------------------------


def test_each_request_says_what_its_name_says() -> None:
    """Reasoning goes back as it came, not at all, with one word changed, and as a blank; the rest stays equal."""
    host = Host({"open.without": REFUSAL})
    host.probe()

    def field(name: str) -> Any:
        return host.sent(name)["messages"][1].get("reasoning_content")

    assert (THOUGHT, None, " ") == (field("open.with"), field("open.without"), field("open.blank"))
    changed = field("open.word")
    assert 1 == sum(one != other for one, other in zip(changed.split(), THOUGHT.split(), strict=True))
    without = [{k: v for k, v in m.items() if k != "reasoning_content"} for m in host.sent("open.with")["messages"]]
    assert without == host.sent("open.without")["messages"]
    assert 2 == sum("reasoning_content" in message for message in host.sent("later.with")["messages"])


def test_a_stranger_s_call_has_a_blank_and_nothing_of_this_host() -> None:
    """A call of another model goes out under another id with the blank that is to stand in."""
    host = Host({"open.without": REFUSAL})
    host.probe()
    message = host.sent("open.stranger")["messages"][1]
    assert (" ", "call_5f3a9c1e7b2d4068a1c3") == (message["reasoning_content"], message["tool_calls"][0]["id"])


def test_answers_are_limited_and_parameters_of_a_person_win() -> None:
    """The limit of the output goes along; a parameter given by hand replaces ours."""
    host = Host()
    host.probe(max_tokens=7, seed=1)
    assert {(7, 1)} == {(json.loads(ask.body)["max_tokens"], json.loads(ask.body)["seed"]) for ask in host.asks}


def test_a_limit_that_is_refused_goes_under_its_other_name() -> None:
    """Where the host does not know one name of the limit, the next is tried."""
    refusals = iter(["Unsupported parameter: 'max_tokens'"])
    host = Host()
    chat = host.answer
    host.answer = lambda ask: error(400, text) if (text := next(refusals, "")) else chat(ask)  # type: ignore[method-assign]
    found = host.probe()
    assert 1000 == host.sent("later.with")["max_completion_tokens"]
    assert found.called

    with pytest.raises(ProviderError, match="max_completion_tokens"):
        Host({"opening": "neither max_tokens nor max_completion_tokens"}).probe()


def test_every_dialect_has_a_limit() -> None:
    """No dialect is probed without a limit of the output, and the most requests are known beforehand."""
    assert all(limits(name) for name in PACKAGES)
    host = Host({"open.without": REFUSAL, "later.without": REFUSAL})
    host.probe()
    assert len(host.asks) <= most("openai-chat")


# -- what follows ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("refused", "counted", "demand"),
    [
        ((), (), ("should", "should")),
        ((), ("open.with",), ("should", "may")),
        ((), ("open.with", "later.with"), ("should", "should")),
        (("open.without",), ("open.with",), ("must", "may")),
        (("open.with",), (), ("never", "should")),
        (("later.with",), (), ("should", "never")),
        (("open.with", "later.with"), (), ("never", "never")),
        (("later.without",), (), ("should", "must-after-tools")),
        (("later.without", "plain.without"), (), ("should", "must")),
        (("later.without", "plain"), (), ("should", "must-after-tools")),
    ],
)
def test_the_demand_follows_from_what_is_refused(
    refused: tuple[str, ...], counted: tuple[str, ...], demand: tuple[str, str]
) -> None:
    """Refused without is must, refused with is never; accepted both ways is should, or may if it does not count."""
    said = keys(row(Host(dict.fromkeys(refused, REFUSAL), counts=counted)))
    assert demand == (said["open_turn"], said["later"])
    assert ("none" if demand == ("never", "never") else "field") == said["form"]


@pytest.mark.parametrize(
    ("refused", "scope", "everywhere"),
    [
        ((), None, "never"),
        (("later.without",), "tool-calls", "tool-calls"),
        (("later.without", "later.calls"), "all", "with-tools"),
        (("later.without", "later.calls", "plain.without"), "all", "all"),
    ],
)
def test_which_messages_need_something(refused: tuple[str, ...], scope: str | None, everywhere: str) -> None:
    """Whether calls alone or all messages are refused without says where a blank must stand."""
    said = keys(row(Host({"open.without": REFUSAL, **dict.fromkeys(refused, REFUSAL)})))
    assert (scope, " ", everywhere, ("placeholder",)) == (
        said.get("scope"),
        said["placeholder"],
        said["placeholder_on"],
        said["missing"],
    )


@pytest.mark.parametrize(
    ("refused", "blank"), [(("open.stranger",), " "), (("open.blank",), " "), (("open.blank", "open.stranger"), "")]
)
def test_a_blank_stands_in_if_it_is_accepted_anywhere(refused: tuple[str, ...], blank: str) -> None:
    """In place of the model's own reasoning or of another's; refused in both, nothing stands in."""
    known = strict(missing=("placeholder", "none"))
    probed = row(Host({"open.without": REFUSAL, **dict.fromkeys(refused, REFUSAL)}), known)
    said = keys(probed)
    assert (blank, "never", ("placeholder",) if blank else ("none",)) == (
        said["placeholder"],
        said["placeholder_on"],
        said["missing"],
    )


@pytest.mark.parametrize(
    ("reasoning", "form", "field"),
    [
        ({"reasoning": THOUGHT}, "field", "reasoning"),
        (
            {"content": f"<think>{THOUGHT}</think>Rain.", "with_calls": {"content": f"<think>{THOUGHT}</think>"}},
            "tags",
            "",
        ),
        ({"reasoning_details": [{"type": "reasoning.text", "text": THOUGHT, "format": "x"}]}, "details", ""),
        ({}, "none", ""),
    ],
)
def test_the_form_is_the_one_reasoning_came_in(reasoning: dict[str, Any], form: str, field: str) -> None:
    """Field, tags, details or nothing at all; it goes back in the same, and can be changed there."""
    host = Host(reasoning=reasoning)
    found = host.probe()
    assert (form, field) == (found.form, found.field)
    asked = [name for name in host.names if name != "opening"]
    expected = ["open.with", "open.without", "open.word", "later.with", "later.without", "later.word"]
    assert ([] if form == "none" else expected) == asked


def test_a_field_that_is_no_longer_the_one_is_found() -> None:
    """A known row that reads another field, and an endpoint that must not know of reasoning, hide nothing."""
    like = strict(reasoning_field="thoughts")
    at = place(rule=like)
    host = Host(at=msgspec.structs.replace(at, endpoint=msgspec.structs.replace(at.endpoint, strict=True)))
    said = keys(row(host, like))
    assert ("reasoning_content", "") == (said["field"], said["reasoning_field"])
    assert THOUGHT == host.sent("open.with")["messages"][1]["reasoning_content"]


def test_a_row_that_takes_what_came_agrees_with_it() -> None:
    """A known row that gives tags or details back as received stays as it is."""
    details = [{"type": "reasoning.text", "text": THOUGHT, "format": "x"}]
    probed = row(Host(reasoning={"reasoning_details": details}), strict(form="tags", as_received=True))
    assert "tags" == probed.rule.form
    assert "form" not in [found.key for found in probed.differences]


def test_a_model_that_does_not_call_its_tool_is_probed_on_later_turns() -> None:
    """Without a call the turn under way is not probed, and must is must: no tool was used."""
    host = Host({"later.without": REFUSAL}, body=lambda ask: chat_text(host, ask))
    said = keys(row(host))
    assert ["opening", "later.with", "later.without", "later.word"] == host.names
    assert ("must", False) == (said["later"], "open_turn" in said)


def test_a_host_that_takes_no_tools_is_asked_without() -> None:
    """Where the first request is refused, one without tools follows, and the later turn is probed."""
    host = Host()
    chat = host.answer
    host.answer = lambda ask: error(400, "no tools here") if b"get_weather" in ask.body else chat(ask)  # type: ignore[method-assign]
    found = host.probe()
    assert (False, True) == (found.called, found.accepted("later.with"))


def test_a_tool_that_is_called_again_gets_its_result() -> None:
    """The turn goes on until the model answers; with one that never does the probe gives up."""
    rounds = iter([True, False])
    host = Host(body=lambda ask: chat_call(host, ask) if ask.name == "finish" and next(rounds) else first(host, ask))
    assert host.probe().accepted("later.with")
    assert 2 == host.names.count("finish")

    endless = Host({"open.with": REFUSAL}, body=lambda ask: chat_call(endless, ask))
    with pytest.raises(ThinkbackError, match="does not come to an end"):
        endless.probe()
    refusing = Host({"finish": REFUSAL}, body=lambda ask: chat_call(refusing, ask))
    with pytest.raises(ThinkbackError, match="does not come to an end"):
        refusing.probe()


# -- opaque values -----------------------------------------------------------------------------------------------------


def messages_api(ask: Ask) -> dict[str, Any]:
    """A response of the anthropic dialect with a signed thought."""
    thought = {"type": "thinking", "thinking": THOUGHT, "signature": SIGNATURE + str(len(ask.body))}
    said: dict[str, Any] = {"type": "text", "text": "Rain."}
    if wants_tool(ask):
        said = {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Oslo"}}
    usage = {"input_tokens": 10, "cache_read_input_tokens": 30, "output_tokens": 5}
    stop = "tool_use" if wants_tool(ask) else "end_turn"
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": stop}
    return {**head, "content": [thought, said], "usage": usage}


def test_signed_thoughts_are_probed_without_their_signature() -> None:
    """One character of the signature is changed, and it is taken away; refused, its type needs it."""
    refused = dict.fromkeys(("open.without", "open.unsigned", "open.opaque", "open.word"), REFUSAL)
    host = Host(refused, at=place("anthropic", strict(form="native")), body=messages_api)
    probed = row(host, strict(form="native", missing=()))
    said, got = keys(probed), host.sent("open.with")["messages"][1]["content"][0]
    altered, unsigned = (host.sent(f"open.{name}")["messages"][1]["content"][0] for name in ("opaque", "unsigned"))
    assert ("native", "must", ("thinking",)) == (said["form"], said["open_turn"], said["need_signature"])
    assert "signature" not in unsigned
    assert 1 == sum(one != other for one, other in zip(got["signature"], altered["signature"], strict=True))
    assert got["thinking"] == altered["thinking"] == unsigned["thinking"]
    assert "missing" not in said


@pytest.mark.parametrize("known", [("thinking",), ("*",)])
def test_what_is_known_to_need_a_signature_stays_so(known: tuple[str, ...]) -> None:
    """A refusal without it adds nothing, and acceptance takes nothing away."""
    like = strict(form="native", need_signature=known)
    for refused in ({}, {"open.unsigned": REFUSAL}):
        assert "need_signature" not in keys(row(Host(refused, at=place("anthropic", like), body=messages_api), like))


def test_opaque_reasoning_that_does_not_count_still_should_go() -> None:
    """Cached input counts too; what the host cannot be seen to count is no reason to leave it out."""
    said = keys(row(Host(at=place("anthropic", strict(form="native")), body=messages_api), strict(form="native")))
    assert ("should", "should") == (said["open_turn"], said["later"])


def generate_content(ask: Ask) -> dict[str, Any]:
    """A response of the gemini dialect with a signature on its part."""
    part: dict[str, Any] = {"text": "Rain.", "thoughtSignature": SIGNATURE}
    if wants_tool(ask):
        part = {"functionCall": {"name": "get_weather", "args": {"city": "Oslo"}}, "thoughtSignature": f"A{SIGNATURE}"}
    return {
        "candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}],
        "modelVersion": "m",
    }


@pytest.mark.parametrize(
    ("refused", "signed", "missing"),
    [
        (("open.without", "open.unsigned"), True, ("dummy",)),
        (("open.without", "open.unsigned", "open.stranger"), True, ()),
        ((), False, None),
    ],
)
def test_signed_calls_are_probed_with_the_stand_in(
    refused: tuple[str, ...], signed: bool, missing: tuple[str, ...] | None
) -> None:
    """A call without its signature shows whether it is demanded, a stranger's call whether the stand-in works."""
    like = strict(form="native", missing=("dummy",), dummy="skip", signed_calls=True, placeholder="")
    host = Host(dict.fromkeys(refused, REFUSAL), at=place("gemini", like), body=generate_content)
    said = keys(row(host, like))
    assert (signed, missing) == (said["signed_calls"], said.get("missing"))
    if refused:
        assert b'"thoughtSignature":"skip"' in next(ask.body for ask in host.asks if ask.name == "open.stranger")


def test_signatures_on_calls_of_chat_completions_are_native() -> None:
    """Where a host of openai-chat signs its calls, they go back as the blocks they were."""
    call = {"id": "c", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}
    signed = {**call, "extra_content": {"google": {"thought_signature": SIGNATURE}}}
    host = Host(reasoning={"with_calls": {"tool_calls": [signed]}})
    found = host.probe()
    assert ("native", True) == (found.form, found.signed_calls)
    assert SIGNATURE.encode() not in next(ask.body for ask in host.asks if ask.name == "open.unsigned")


# -- what is no evidence -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (error(401, "bad key"), "answered 401: bad key"),
        (error(429, "slow down"), "answered 429: slow down"),
        (error(500, "oh"), "answered 500: oh"),
        (Answer(200, "text/event-stream", b'data: {"choices":[{"index":0,"delta":{"content":"Ra'), "broke off"),
    ],
)
def test_other_errors_end_the_probe(answer: Answer, says: str) -> None:
    """A bad key, a limit of requests, a broken answer say nothing about reasoning."""
    with pytest.raises(ProviderError, match=says):
        Host({"open.without": answer}).probe()


def test_a_first_request_that_is_refused_ends_it() -> None:
    """The host's words are told, with what to do."""
    with pytest.raises(ProviderError, match="refused the first request: no such model") as caught:
        Host({"opening": "no such model"}).probe()
    assert 400 == caught.value.details["status"]


def test_a_refusal_with_and_without_ends_it() -> None:
    """What is refused whatever it carries is not about reasoning; in the later turn it just is not concluded from."""
    with pytest.raises(ThinkbackError, match="with reasoning and without"):
        Host({"open.with": REFUSAL, "open.without": REFUSAL}).probe()
    assert "later" not in keys(row(Host({"later.with": REFUSAL, "later.without": REFUSAL})))


def test_an_answer_that_is_cut_off_ends_it() -> None:
    """More tokens are wanted then."""
    host = Host(body=lambda ask: cut_off(host, ask))
    with pytest.raises(ThinkbackError, match="cut off after 1000 tokens") as caught:
        host.probe()
    assert ("give more with --max-tokens",) == caught.value.next_actions


def test_a_refusal_inside_a_stream_is_evidence() -> None:
    """A router sends 200 first; the error that follows has the status. Its words are those of who refused."""
    chunk = {
        "error": {
            "message": "Provider returned error",
            "code": 400,
            "metadata": {"raw": '{"error":{"message":"no \\"x\\""}}'},
        }
    }
    answer = Answer(200, "text/event-stream", b"data: %b\n\n" % json.dumps(chunk).encode())
    found = Host({"open.word": answer}).probe()
    assert (False, 400, 'no "x"') == (
        found.accepted("open.word"),
        found.outcomes["open.word"].status,
        found.outcomes["open.word"].text,
    )


def test_a_key_that_the_host_repeats_is_not_in_the_findings() -> None:
    """The key is blotted out of a refusal, whole or inside a stream."""
    key = "sk-secret-of-the-test"
    chunk = {"error": {"message": f"{key} may not", "code": 400}}
    answers = (
        error(400, f"{key} may not"),
        Answer(200, "text/event-stream", b"data: %b\n\n" % json.dumps(chunk).encode()),
    )
    for answer in answers:
        host = Host({"open.word": answer})
        chat = host.answer

        def keyed(ask: Ask, chat: Any = chat) -> Answer:
            ask.plan.course.headers = {"Authorization": f"Bearer {key}"}
            found: Answer = chat(ask)
            return found

        host.answer = keyed  # type: ignore[method-assign]
        assert "*** may not" == host.probe().outcomes["open.word"].text


# -- the row -----------------------------------------------------------------------------------------------------------


def test_a_row_says_how_sure_each_key_is() -> None:
    """The source names the day and the evidence of each key; what was not probed is named."""
    probed = row(Host({"open.without": REFUSAL}), strict(prefix_bound=True, model=("*",)))
    assert probed.rule.source.startswith(f"probed on {DAY}: form, field: reasoning came in reasoning_content")
    assert "open_turn: refused without it (400)" in probed.rule.source
    assert (DAY, "house", ("thinker",), ("prefix_bound",)) == (
        probed.rule.since,
        probed.rule.endpoint,
        probed.rule.model,
        probed.inherited,
    )


def test_what_was_probed_is_confirmed() -> None:
    """Doubts about keys that the probe showed are gone from the row; the others stay, also as it is written."""
    known = strict(id="known", unconfirmed={"open_turn": "whether it is refused", "controls.effort": "its words"})
    probed = row(Host({"open.without": REFUSAL}), known)
    assert {"controls.effort": "its words"} == probed.rule.unconfirmed
    (written,) = read("f", toml.rule_text(probed, "known"), RuleFile, lambda id: known).rule
    assert probed.rule == written


def test_differences_to_the_known_row_are_told() -> None:
    """A key that is otherwise there is a difference; a field that is left open there is none."""
    known = strict(open_turn="never", later="should", field="", placeholder="", missing=())
    differences = row(Host(), known).differences
    assert [("open_turn", "never", "should")] == [(found.key, found.known, found.probed) for found in differences]


def test_model_names_are_no_patterns() -> None:
    """A name with an asterisk or a bracket stands for itself."""
    assert ("a[*][[]b",) == conclude(Findings("none"), UNKNOWN, "i", "e", "a*[b", DAY).rule.model


def test_refusals_become_patterns_for_numbers_and_ids_of_any_kind() -> None:
    """The text of a refusal is found again with another index and another id; known ones and short ones add none."""
    probed = row(
        Host({"open.without": REFUSAL, "open.word": "short", "later.word": "well known refusal"}),
        strict(refusals=("known",)),
    )
    (old, new) = probed.rule.refusals
    assert "known" == old
    assert re.fullmatch(new, REFUSAL.replace("3", "17").replace("0123456789abcdef", "fedcba9876543210"))
    assert not re.search(new, "the reasoning is fine")


@given(st.text(min_size=1).filter(lambda text: text.strip()))
def test_the_pattern_of_a_text_finds_it(text: str) -> None:
    """Whatever a host writes, the pattern compiles and matches its first line."""
    assert re.search(pattern_of(text), text)


# -- TOML --------------------------------------------------------------------------------------------------------------


def test_a_row_reads_back_as_it_was_written() -> None:
    """With a known row only what was probed is written; without one every key, and both read as the same row."""
    like = strict(id="known", guard=msgspec.structs.replace(strict().guard, reads=("x-*",)), keeps_when={"a.b": True})
    probed = row(Host({"open.without": REFUSAL}), like)
    short, whole = toml.rule_text(probed, "known"), toml.rule_text(probed, "")
    files = [read("f", text, RuleFile, lambda id: like) for text in (short, whole)]
    assert [probed.rule] == list(files[0].rule) == list(files[1].rule)
    assert ("guard" in whole, "guard" in short) == (True, False)
    check("f", files[1])


def test_an_endpoint_reads_back_as_it_was_written() -> None:
    """Defaults are left out, also inside tables; names that are no bare keys are quoted."""
    made = Endpoint(
        "house",
        'The \x7f "House"',
        "http://h/v1",
        auth=Auth(env=("KEY",), optional=True),
        params={"a b": {"c": None, "d": [1, 2.5, {}]}},
        source="me",
    )
    text = toml.endpoint_text(made)
    expected = msgspec.structs.replace(made, params={"a b": {"d": [1, 2.5, {}]}})
    assert (expected,) == read("f", text, RuleFile).endpoint
    assert 'auth = { env = ["KEY"], optional = true }' in text


FILE = """# mine
[[endpoint]]
id = "house"
name = "House"

[[rule]]
id = "one"
field = "x"
[rule.controls]
on.a = 1

# about two
[[rule]] # the second
id = "two"
model = [
    "a",
]
text = '''
[other]
'''

[[model]]
model = "m"
"""


@pytest.mark.parametrize("id", ["one", "two"])
def test_a_row_is_replaced_where_it_stands(id: str) -> None:
    """Tables within it go, comments and every other row stay."""
    after = toml.replaced(FILE, "rule", id, f'[[rule]]\nid = "{id}"\nnew = 1\n')
    said = tomllib.loads(after)
    assert {"id": id, "new": 1} in said["rule"]
    assert ["one", "two"] == [found["id"] for found in said["rule"]]
    assert all(comment in after for comment in ("# mine", "# about two"))
    assert after == toml.replaced(after, "rule", id, f'[[rule]]\nid = "{id}"\nnew = 1\n')


@pytest.mark.parametrize("text", ["", "# empty\n", "a = 1", FILE])
def test_a_new_row_comes_last(text: str) -> None:
    """Whatever the file holds stays before it."""
    after = toml.replaced(text, "rule", "three", '[[rule]]\nid = "three"\n')
    assert after.startswith(text)
    assert {"id": "three"} == tomllib.loads(after)["rule"][-1]


def test_a_row_that_cannot_be_found_by_its_lines_is_not_touched() -> None:
    """Rows written as an inline array are left to whoever wrote them so."""
    with pytest.raises(RuleFileError, match="cannot be replaced"):
        toml.replaced('rule = [{ id = "one" }]\n', "rule", "one", "")


def test_a_row_can_be_taken_out() -> None:
    """A file that has it loses it alone; one that has not stays."""
    assert ["two"] == [found["id"] for found in tomllib.loads(toml.without(FILE, "rule", "one"))["rule"]]
    assert FILE == toml.without(FILE, "rule", "three")


# -- edits -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("thought", "after"), [("12 34", "12 34 otherwise"), ("say otherwise", "say likewise")])
def test_one_word_is_changed_whatever_the_words(thought: str, after: str) -> None:
    """A thought without words gets one; the word that replaces is replaced as well."""
    body = edited(json.dumps({"r": thought}).encode(), "word", [ThinkingBlock(thought)])
    assert body is not None
    assert {"r": after} == json.loads(body)


def test_what_is_not_there_cannot_be_changed() -> None:
    """A request without the thought, or with a short one inside another text, stays as it is."""
    blocks = [ThinkingBlock("Oslo", carriers=(Carrier("item_id", "rs_1"), Carrier("encrypted", "A")))]
    assert edited(b'{"q":"Where is Oslo?","id":"rs_1","n":[1,true]}', "word", blocks) is None
    assert edited(b'{"id":"rs_1"}', "unsigned", blocks) is None
    assert edited(b'{"e":"A"}', "opaque", blocks) == b'{"e":"B"}'


def test_a_variation_that_changes_nothing_is_not_sent() -> None:
    """Where a rule keeps thoughts away, changing a word of them would prove nothing."""
    host = Host(at=place("anthropic", strict(form="native", need_signature=("thinking",))), body=unsigned_api)
    assert host.probe().accepted("open.word") is None
    assert "open.word" not in host.names


def unsigned_api(ask: Ask) -> dict[str, Any]:
    """The same without a signature."""
    answer = messages_api(ask)
    del answer["content"][0]["signature"], answer["usage"]
    return answer


def chat_text(host: Host, ask: Ask) -> dict[str, Any]:
    return Host._chat(host, ask._replace(name="text"))


def chat_call(host: Host, ask: Ask) -> dict[str, Any]:
    return Host._chat(host, ask._replace(name="opening"))


def first(host: Host, ask: Ask) -> dict[str, Any]:
    """A model that calls its tool in the first two answers."""
    return chat_call(host, ask) if ask.name in ("open.with", "opening") else chat_text(host, ask)


def cut_off(host: Host, ask: Ask) -> dict[str, Any]:
    body = chat_text(host, ask)
    body["choices"][0]["finish_reason"] = "length"
    return body


def test_the_prompts_are_told_before_they_cost() -> None:
    """The rough count of input covers every prompt."""
    texts = (conversation.PROMPT, conversation.RESULT, conversation.NEXT, conversation.SCHEMA)
    assert sum(map(len, texts)) / 4 < conversation.ROUGHLY
