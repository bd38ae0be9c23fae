"""Google's rules about bodies, thinking controls and thought signatures, judged without a server."""

from __future__ import annotations

import base64

import pytest

from tests.referee.gemini.google import TOOLS, answer, call, model, user
from tests.referee.talk import Body
from thinkback_referee import Verdict
from thinkback_referee.gemini.judge import judge
from thinkback_referee.gemini.ledger import Ledger, Mint
from thinkback_referee.gemini.profiles import HOSTS, PROFILES

THREE = "gemini-3-flash-preview"
TWO = "gemini-2.5-flash"
SIGNED = base64.b64encode(b"\x12\xafone signature\xfb\xff").decode()
OTHER = base64.b64encode(b"\x12\xafanother signature").decode()
SKIP = "skip_thought_signature_validator"
CONTEXT = "context_engineering_is_the_way_to_go"
INVALID = {
    "gemini": "Corrupted thought signature.",
    "vertex": "Unable to submit request because Thought signature is not valid.. Learn more: "
    "https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/gemini",
}
MISSING = (
    "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, "
    "and missing thought_signature may lead to degraded model performance. Additional data, function call "
    "`default_api:get_weather` , position {}. Please refer to "
    "https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
)
MISSING_VERTEX = (
    "Unable to submit request because function call `default_api:get_weather` in the {}. content block is missing a "
    "`thought_signature`. Learn more: https://docs.cloud.google.com/vertex-ai/generative-ai/docs/thought-signatures"
)
COUNT = (
    "Please ensure that the number of function response parts is equal to the number of function call parts of the "
    "function call turn."
)
CALL_TURN = (
    "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
)
ANSWER_TURN = "Please ensure that function response turn comes immediately after a function call turn."


@pytest.fixture
def ledger() -> Ledger:
    """A ledger in which ``SIGNED`` came on a call of get_weather, and ``OTHER`` on the text "It rains."."""
    known = Ledger()
    known.add(SIGNED, Mint("gemini", THREE, thought="t", call="get_weather"))
    known.add(OTHER, Mint("gemini", THREE, thought="u", text="It rains."))
    return known


def judged(ledger: Ledger, *contents: Body, name: str = THREE, host: str = "gemini", **members: object) -> Verdict:
    body: Body = {"contents": list(contents), "tools": TOOLS, **members}
    return judge(HOSTS[host], PROFILES[name], body, ledger)


def verdict(*contents: Body, name: str = THREE, host: str = "gemini", **members: object) -> tuple[int, str]:
    found = judged(Ledger(), *contents, name=name, host=host, **members)
    return found.status, found.message


def loop(signature: str) -> list[Body]:
    """An open turn with one answered call."""
    return [user("hi"), model(call(signature)), user(answer())]


@pytest.mark.parametrize(("host", "text"), [("gemini", MISSING), ("vertex", MISSING_VERTEX)])
def test_a_call_of_the_open_turn_must_be_signed(host: str, text: str, ledger: Ledger) -> None:
    """Gemini 3 refuses an unsigned call with the host's text, the function's name and the content's position."""
    assert (400, text.format(2)) == verdict(*loop(""), host=host)
    assert judged(ledger, *loop(SIGNED), host=host).ok


def test_every_step_of_the_open_turn_must_be_signed(ledger: Ledger) -> None:
    """A signed first step does not excuse an unsigned second one."""
    refused = judged(ledger, *loop(SIGNED), model(call()), user(answer()))
    assert (400, MISSING.format(4), "missing at contents[3]") == (refused.status, refused.message, refused.reason)


def test_an_older_turn_may_be_unsigned() -> None:
    """After a new user message nobody asks for the signatures before it."""
    assert (200, "") == verdict(*loop(""), model("done"), user("next"))


def test_an_answer_with_a_new_text_opens_a_turn() -> None:
    """A content of more than function responses is a user turn, so the call before it is history."""
    assert (200, "") == verdict(user("hi"), model(call()), user(answer(), "and hurry"))


def test_only_the_first_of_parallel_calls_must_be_signed(ledger: Ledger) -> None:
    """The second call of one step has no signature, and gets none."""
    parallel = model(call(SIGNED), call(identifier="b"))
    answers = user(answer(), answer(identifier="b"))
    assert judged(ledger, user("hi"), parallel, answers).ok
    late = model(call(), call(SIGNED, identifier="b"))
    assert "missing at contents[1]" == judged(ledger, user("hi"), late, answers).reason


@pytest.mark.parametrize("name", ["gemini-2.5-pro", TWO])
@pytest.mark.parametrize("signature", ["", OTHER, "bm9uc2Vuc2U=", SKIP])
def test_gemini_25_looks_at_no_signature(name: str, signature: str) -> None:
    """2.5 takes calls unsigned, and signed with anything."""
    assert (200, "") == verdict(*loop(signature), name=name)


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("at", [0, 5, 12])
def test_a_signature_with_one_byte_changed_is_refused(host: str, at: int, ledger: Ledger) -> None:
    """Signatures that were never issued are refused in the host's words, in the open turn and before it."""
    octets = bytearray(base64.b64decode(SIGNED))
    octets[at] ^= 1
    altered = base64.b64encode(bytes(octets)).decode()
    for contents in (loop(altered), [*loop(altered), model("done"), user("next")]):
        refused = judged(ledger, *contents, host=host)
        assert (400, INVALID[host]) == (refused.status, refused.message)
        assert "changed at contents[1].parts[0]" == refused.reason


def test_url_safe_base64_is_the_same_signature(ledger: Ledger) -> None:
    """The signature is bytes; both alphabets of base64 write the same ones."""
    assert "/" in SIGNED or "+" in SIGNED
    assert judged(ledger, *loop(SIGNED.replace("+", "-").replace("/", "_"))).ok


def test_a_signature_that_is_no_base64_is_refused_as_bytes(ledger: Ledger) -> None:
    """What cannot be decoded is refused by the parser's rule."""
    refused = judged(ledger, *loop(SIGNED[:-1]))
    assert (400, True) == (refused.status, "(TYPE_BYTES), Base64 decoding failed" in refused.message)


def test_a_signature_of_another_model_is_refused(ledger: Ledger) -> None:
    """Across models signatures are not guaranteed; here they are refused. Another name of the same model reads them."""
    refused = judged(ledger, *loop(SIGNED), name="gemini-3.5-flash")
    assert ("Corrupted thought signature.", "foreign at contents[1].parts[0]") == (refused.message, refused.reason)
    ledger.add(SIGNED, Mint("gemini", "gemini-3-pro-preview", call="get_weather"))
    assert judged(ledger, *loop(SIGNED), name="gemini-3-pro").ok


@pytest.mark.parametrize("encoded", [False, True])
@pytest.mark.parametrize(
    ("host", "dummy", "status"),
    [("gemini", SKIP, 200), ("gemini", CONTEXT, 200), ("vertex", SKIP, 200), ("vertex", CONTEXT, 400)],
)
def test_the_documented_dummies_pass(host: str, dummy: str, status: int, encoded: bool) -> None:
    """Both dummies pass at AI Studio, one at Vertex; literally or as base64."""
    sent = base64.b64encode(dummy.encode()).decode() if encoded else dummy
    assert status == verdict(*loop(sent), host=host)[0]


def test_dummies_may_repeat_but_not_stand_on_later_calls() -> None:
    """Each step may have the dummy on its first call, no other part may."""
    assert (200, "") == verdict(*loop(SKIP), model(call(SKIP)), user(answer()))
    answers = user(answer(), answer(identifier="b"))
    late = judged(Ledger(), user("hi"), model(call(SKIP), call(SKIP, identifier="b")), answers)
    assert (400, "dummy at contents[1].parts[1]") == (late.status, late.reason)


def test_one_signature_on_two_parts_is_refused(ledger: Ledger) -> None:
    """A signature that comes back twice would be billed twice."""
    refused = judged(ledger, *loop(SIGNED), model(call(SIGNED)), user(answer()))
    assert (400, "repeated at contents[3].parts[0]") == (refused.status, refused.reason)


def test_a_signature_stays_with_its_kind_of_part(ledger: Ledger) -> None:
    """A call's signature belongs on a call of that function, a text's on no call and on no longer text."""
    time = model(call(SIGNED, "get_time"))
    on_text = model({"text": "so", "thoughtSignature": SIGNED})
    merged = model({"text": "Well. It rains.", "thoughtSignature": OTHER})
    for contents, status in (
        ([user("hi"), time, user(answer("get_time"))], 400),
        ([user("hi"), on_text, user("next")], 400),
        (loop(OTHER), 400),
        ([user("hi"), merged, user("next")], 400),
        ([user("hi"), model({"text": "It rains.", "thoughtSignature": OTHER}), user("next")], 200),
        ([user("hi"), model({"thought": True, "thoughtSignature": OTHER}, "It rains."), user("next")], 200),
    ):
        refused = judged(ledger, *contents)
        assert status == refused.status, refused.reason
        assert refused.ok or refused.reason.startswith("moved at contents[1].parts[0]")


def thinking(name: str, **config: object) -> tuple[int, str]:
    return verdict(user("hi"), name=name, generationConfig={"thinkingConfig": config})


@pytest.mark.parametrize(
    ("name", "config", "message"),
    [
        (THREE, {"thinkingLevel": "LOW", "thinkingBudget": 0}, "You can only set only one of thinking budget and "),
        (TWO, {"thinking_level": "low", "thinkingBudget": 0}, "You can only set only one of thinking budget and "),
        ("gemini-2.0-flash", {"includeThoughts": True}, "Thinking is not enabled for models/gemini-2.0-flash"),
        (TWO, {"thinkingLevel": "LOW"}, "Thinking level is not supported for this model."),
        ("gemini-3-pro", {"thinkingLevel": "MINIMAL"}, "Thinking level MINIMAL is not supported for this model. Pl"),
        ("gemini-3.7-flash", {"thinkingLevel": "minimal"}, "Thinking level MINIMAL is not supported for this model."),
        ("gemini-3.5-flash", {"thinkingBudget": 1024}, "Thinking budget is not supported for this model."),
        ("gemini-2.5-pro", {"thinkingBudget": 0}, "Budget 0 is invalid. This model only works in thinking mode."),
        ("gemini-2.5-pro", {"thinkingBudget": 99999}, "The thinking budget 99999 is invalid. Please choose a value be"),
        (THREE, {"thinkingBudget": 0}, "Budget 0 is invalid. This model only works in thinking mode."),
        (TWO, {"thinkingBudget": "many"}, "Invalid value at 'generation_config.thinking_config.thinking_budget'"),
        (THREE, {"thinkingLevel": "loud"}, "Invalid value at 'generation_config.thinking_config.thinking_level'"),
        (THREE, {"includeThoughts": "yes"}, "Invalid value at 'generation_config.thinking_config.include_thoughts'"),
        (THREE, {"effort": "high"}, 'Invalid JSON payload received. Unknown name "effort" at \'generation_config.thi'),
    ],
)
def test_thinking_controls_that_a_model_does_not_take_are_refused(name: str, config: Body, message: str) -> None:
    """Each wrong control is refused with its own sentence."""
    status, said = thinking(name, **config)
    assert (400, True) == (status, said.startswith(message)), said


@pytest.mark.parametrize(
    ("name", "config"),
    [
        (TWO, {"thinkingBudget": 0}),
        (TWO, {"thinking_budget": -1, "include_thoughts": True}),
        (THREE, {"thinkingLevel": "minimal"}),
        (THREE, {"thinkingBudget": 1024}),
        ("gemini-3.5-flash", {"thinkingLevel": "MINIMAL"}),
        ("gemini-3.7-flash", {"thinkingLevel": "LOW"}),
    ],
)
def test_thinking_controls_of_the_model_are_taken(name: str, config: Body) -> None:
    """Budgets for 2.5, levels from 3 on, both spellings of names."""
    assert (200, "") == thinking(name, **config)


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        ([], "* GenerateContentRequest.contents: contents is not specified\n"),
        ([{"role": "user", "parts": []}], "* GenerateContentRequest.contents[0].parts: contents.parts must not be em"),
        ([user({})], "* GenerateContentRequest.contents[0].parts[0].data: required oneof field 'data' must have one i"),
        ([{"role": "assistant", "parts": [{"text": "x"}]}], "Please use a valid role: user, model."),
        ([user({"text": "x", "inlineData": {}})], "Invalid value at 'contents[0].parts[0]' (oneof), oneof field 'da"),
        ([user({"text": "x", "cache": 1})], 'Invalid JSON payload received. Unknown name "cache" at \'contents[0].pa'),
        ([user("x"), model("y")], "Please ensure that multiturn requests end with a user turn or a function response"),
        ([user("x"), model(call(SKIP))], COUNT),
        ([user("x"), model(call(SKIP)), user("so?")], COUNT),
        ([user("x"), model(call(SKIP)), user(answer(), answer())], COUNT),
        ([user("x"), model(call(SKIP), call(identifier="b")), user(answer()), user(answer(identifier="b"))], COUNT),
        ([model(call(SKIP)), user(answer())], CALL_TURN),
        ([user(call(SKIP))], CALL_TURN),
        ([user(answer())], ANSWER_TURN),
        ([user("x"), model(answer())], ANSWER_TURN),
        ([user("x"), model(call(SKIP)), user(answer(identifier="z"))], "Function response id `z` does not match a fun"),
    ],
)
def test_malformed_conversations_are_refused(contents: list[Body], message: str) -> None:
    """Shape, roles and the pairing of calls with answers, each with Google's sentence."""
    status, said = verdict(*contents)
    assert (400, True) == (status, said.startswith(message)), said


def test_a_wrong_type_is_refused_by_place() -> None:
    """An object is wanted where the body has a number."""
    assert (400, "Invalid value at 'contents[0].parts[0].function_call' (Object), 1") == verdict(
        user({"functionCall": 1})
    )


def test_a_role_may_be_left_out_at_ai_studio_alone() -> None:
    """Contents without a role are the user's at AI Studio and an error at Vertex."""
    assert (200, "") == verdict({"parts": [{"text": "hi"}]})
    assert (400, "Please use a valid role: user, model.") == verdict({"parts": [{"text": "hi"}]}, host="vertex")


def test_calls_and_answers_may_be_without_ids(ledger: Ledger) -> None:
    """Where the calls have no ids, names tie answers to them."""
    bare: Body = {"functionCall": {"name": "get_weather"}, "thoughtSignature": SIGNED}
    result: Body = {"functionResponse": {"name": "get_weather", "response": {}}}
    assert judged(ledger, user("hi"), model(bare), user(result)).ok


def test_neighbouring_model_contents_are_one_call_turn(ledger: Ledger) -> None:
    """Two contents of the model may be answered together; each step's first call is signed."""
    answers = user(answer(), answer(identifier="b"))
    assert judged(ledger, user("hi"), model(call(SIGNED)), model(call(SKIP, identifier="b")), answers).ok


def test_a_call_answered_by_text_passes_at_25_alone() -> None:
    """2.5 was recorded to take it."""
    assert (200, "") == verdict(user("x"), model(call()), user("5"), name=TWO)


def test_snake_case_and_nulls_are_taken(ledger: Ledger) -> None:
    """Every name may be written either way, and null means absent."""
    contents: list[Body] = [
        {"role": "user", "parts": [{"text": "hi"}]},
        {"role": "model", "parts": [{"function_call": {"name": "get_weather"}, "thought_signature": SIGNED}]},
        {"role": "user", "parts": [{"function_response": {"name": "get_weather", "response": {}}}]},
    ]
    assert judged(ledger, *contents, tool_config=None, safety_settings=None).ok
    unsigned: list[Body] = [
        contents[0],
        {"role": "model", "parts": [{"function_call": {"name": "get_weather"}}]},
        contents[2],
    ]
    assert (400, MISSING.format(2)) == verdict(*unsigned)


def test_judging_does_not_write_to_the_ledger() -> None:
    """A request teaches the ledger nothing."""
    empty = Ledger()
    judged(empty, *loop(SIGNED))
    assert empty.find(SIGNED) is None


def test_parallel_calls_split_into_steps_lose_their_signature(ledger: Ledger) -> None:
    """FC1, FR1, FC2, FR2 of one response makes its second call an unsigned step."""
    split = [*loop(SIGNED), model(call(identifier="b")), user(answer(identifier="b"))]
    assert "missing at contents[3]" == judged(ledger, *split).reason
