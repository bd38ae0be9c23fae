"""The Interactions persona: stored and stateless conversations, its rules about thoughts, its events."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from tests.exchanges import corpus, exchanges
from tests.referee.learning import learn_interactions
from tests.referee.talk import Body, Got, send
from thinkback_referee import KNOWN, LOST, Call, ErrorInStream, Referee, Step, code_word, models_of
from thinkback_referee.gemini.profiles import PROFILES
from thinkback_referee.interactions.judge import judge
from thinkback_referee.interactions.ledger import Ledger, Mint, steps_of
from thinkback_referee.interactions.request import Request
from thinkback_referee.jsons import as_list, as_object, as_text
from thinkback_referee.script import RejectCarrier

MODEL = "gemini-3-flash-preview"
OSLO, BERGEN = "What is the weather in Oslo?", "And Bergen?"
KEY = {"x-goog-api-key": "test-key"}
PATH = "/gemini-interactions/v1beta/interactions"
SCHEMA: Body = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS: list[Body] = [{"type": "function", "name": "get_weather", "parameters": SCHEMA}]
THOUGHT: Body = {"type": "thought", "signature": "c2lnbmF0dXJl", "summary": [{"type": "text", "text": "Hm."}]}
CALL: Body = {"type": "function_call", "id": "c1", "name": "get_weather", "arguments": {"city": "Oslo"}}
RESULT: Body = {"type": "function_result", "call_id": "c1", "name": "get_weather", "result": "rain"}


def said(text: str) -> Body:
    return {"type": "user_input", "content": [{"type": "text", "text": text}]}


def output(text: str) -> Body:
    return {"type": "model_output", "content": [{"type": "text", "text": text}]}


def post(referee: Referee, body: Body, path: str = PATH, headers: dict[str, str] | None = None) -> Got:
    return send(referee, "POST", path, json.dumps({"model": MODEL, **body}).encode(), headers or KEY, None)


def told(got: Got) -> Body:
    """The interaction of a response, whole or streamed."""
    if not got.events:
        return dict(got.json)
    ledger = Ledger()
    learn_interactions(ledger, MODEL, got.data.decode())
    [stored] = ledger.stored.values()
    return stored.body


@dataclass
class Client:
    """A faithful client; stateful: sends ids, else all steps."""

    referee: Referee
    stateful: bool
    stream: bool = False
    config: Body = field(default_factory=dict)
    steps: list[Body] = field(default_factory=list)
    previous: str = ""

    def ask(self, text: str) -> str:
        fresh: list[Body] = [said(text)]
        while True:
            self.steps += fresh
            tied: Body = {"previous_interaction_id": self.previous} if self.previous else {}
            state: Body = {"input": fresh, **tied} if self.stateful else {"input": self.steps, "store": False}
            got = post(self.referee, {**state, "tools": TOOLS, "stream": self.stream, "generation_config": self.config})
            assert (200, None) == (got.status, got.headers.get("x-referee")), got.data
            body = told(got)
            self.previous = as_text(body["id"])
            made = [dict(as_object(step)) for step in as_list(body["steps"])]
            self.steps += made
            fresh = [
                {**RESULT, "call_id": step["id"], "name": step["name"]}
                for step in made
                if step["type"] == "function_call"
            ]
            if not fresh:
                return "".join(
                    as_text(as_object(item)["text"])
                    for step in made
                    if step["type"] == "model_output"
                    for item in as_list(step["content"])
                )


def known(*texts: str) -> str:
    return "; ".join(KNOWN.format(word=code_word(text)) for text in texts)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("stateful", [False, True])
@pytest.mark.parametrize("summaries", ["auto", "none"])
def test_a_faithful_client_hears_every_code_word(
    referee: Referee, stateful: bool, stream: bool, summaries: str
) -> None:
    """By id or by steps, streamed or not, with or without summaries: the thoughts come back."""
    client = Client(referee, stateful, stream, {"thinking_summaries": summaries})
    assert client.ask(OSLO) == f"Here is what I found: get_weather: rain; {known(OSLO)}."
    assert client.ask(BERGEN) == f"Here is what I found: get_weather: rain; {known(OSLO, BERGEN)}."


def test_a_client_that_leaves_out_a_thought_is_refused(referee: Referee) -> None:
    """Stateless history without one thought step is no history."""
    client = Client(referee, stateful=False)
    client.ask(OSLO)
    lacking = [step for step in client.steps if step["type"] != "thought"]
    got = post(referee, {"input": [*lacking, said(BERGEN)], "store": False})
    assert (400, "missing at input[1]") == (got.status, got.headers["x-referee"])
    assert "own" == got.headers["x-referee-wording"]


def test_a_history_of_another_making_has_no_notes(referee: Referee) -> None:
    """Steps that nobody minted are taken without thoughts, and the model says what it lacks."""
    got = post(referee, {"input": [said("hi"), output("hello"), said(BERGEN)]})
    assert LOST in as_text(json.dumps(got.json))


# ---- rules


def minted() -> Ledger:
    ledger = Ledger()
    ledger.add(Mint(MODEL, (THOUGHT, CALL), "Hm."))
    ledger.add(Mint(MODEL, ({"type": "thought", "signature": "b3RoZXI="}, output("It rains.")), "So."))
    return ledger


def verdict(
    ledger: Ledger, *steps: Body, name: str = MODEL, account: str = "", members: Body | None = None
) -> tuple[int, str]:
    found = judge(Request(PROFILES[name], {"input": list(steps), **(members or {})}, account, ledger))
    return found.status, found.reason


LOOP = (said("hi"), THOUGHT, CALL, RESULT)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (LOOP, (200, "")),
        ((*LOOP, {"type": "thought", "signature": "b3RoZXI="}, output("It rains."), said("so?")), (200, "")),
        ((said("hi"), {"type": "thought", "signature": "b3RoZXI="}, output("It rains."), *LOOP[1:]), (200, "")),
        ((said("hi"), output("It rains."), *LOOP[1:]), (400, "reordered at input[1]")),
        ((said("hi"), CALL, RESULT), (400, "missing at input[1]")),
        ((said("hi"), CALL, THOUGHT, RESULT), (400, "reordered at input[1]")),
        ((said("hi"), {**THOUGHT, "signature": "c2lnbmF0dXJm"}, CALL, RESULT), (400, "changed at input[1]")),
        ((said("hi"), {**THOUGHT, "summary": []}, CALL, RESULT), (400, "changed at input[1]")),
        ((said("hi"), THOUGHT, THOUGHT, CALL, RESULT), (400, "reordered at input[1]")),
        ((*LOOP, THOUGHT, output("ok"), said("so?")), (400, "repeated at input[4]")),
        ((said("hi"), output("It rains."), said("so?")), (400, "missing at input[1]")),
        ((said("hi"), {**CALL, "id": "x"}, {**RESULT, "call_id": "x"}), (200, "")),
        ((said("hi"), {**CALL, "signature": ""}, RESULT), (400, "missing at input[1]")),
        ((said("hi"), THOUGHT, CALL), (400, "unanswered call")),
        ((said("hi"), THOUGHT, CALL, said("so?")), (400, "unanswered call")),
        ((said("hi"), said("there"), THOUGHT, CALL, RESULT), (200, "")),
        ((said("hi"), RESULT), (400, "answer without a call")),
        ((said("hi"), output("yo")), (400, "the model ends")),
        ((), (400, "no input")),
        (({"type": "message"},), (400, "unknown step at input[0]")),
    ],
)
def test_steps_come_back_in_order_and_unmodified(steps: tuple[Body, ...], expected: tuple[int, str]) -> None:
    """Thoughts are neither missing, altered, moved nor repeated; calls have their results."""
    assert expected == verdict(minted(), *steps)


def test_thoughts_of_another_model_are_refused() -> None:
    """A signature that another model made is foreign."""
    assert (400, "foreign at input[1]") == verdict(minted(), *LOOP, name="gemini-3.5-flash")


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ({"generation_config": {"thinking_level": "huge"}}, "unsupported thinking level"),
        ({"generation_config": {"thinking_level": "MINIMAL"}}, "unsupported thinking level"),
        ({"generation_config": {"thinking_summaries": "all"}}, "bad thinking_summaries"),
        ({"generation_config": {"thinking_budget": 5}}, "unknown field generation_config.thinking_budget"),
        ({"messages": []}, "unknown field messages"),
        ({"previous_interaction_id": "v1_x", "store": False}, "previous id without store"),
    ],
)
def test_members_that_do_not_fit_are_refused(members: Body, reason: str) -> None:
    """Unknown names, levels the model does not take, an id that cannot be kept."""
    assert (400, reason) == verdict(Ledger(), said("hi"), members=members)


@pytest.mark.parametrize(
    ("name", "level", "status"),
    [
        (MODEL, "minimal", 200),
        (MODEL, "xhigh", 200),
        ("gemini-2.5-flash", "low", 200),
        ("gemini-3.7-flash", "minimal", 400),
    ],
)
def test_the_levels_of_the_model_are_taken(name: str, level: str, status: int) -> None:
    """Lower-case words, as the model has them."""
    config: Body = {"thinking_level": level, "thinking_summaries": "auto"}
    assert status == verdict(Ledger(), said("hi"), name=name, members={"generation_config": config})[0]


def test_an_unknown_or_foreign_interaction_cannot_be_continued() -> None:
    """Ids are known to their account and model alone."""
    ledger = Ledger()
    learn_interactions(ledger, MODEL, {"id": "v1_a", "steps": [output("ok")]}, (said("hi"),), "me")
    tied: Body = {"previous_interaction_id": "v1_a"}
    assert (200, "") == verdict(ledger, said("so?"), account="me", members=tied)
    unknown = (404, "unknown previous_interaction_id")
    assert unknown == verdict(ledger, said("so?"), account="you", members=tied)
    assert unknown == verdict(ledger, said("so?"), account="me", members={"previous_interaction_id": "v1_b"})
    other = verdict(ledger, said("so?"), account="me", name="gemini-3.5-flash", members=tied)
    assert (400, "previous id of another model") == other


@pytest.mark.parametrize(
    ("given", "kinds"),
    [
        ("hi", ["user_input"]),
        ({"type": "text", "text": "hi"}, ["user_input"]),
        ([{"type": "text", "text": "hi"}, {"type": "image"}], ["user_input"]),
        ([RESULT], ["function_result"]),
        ([{"type": "user_input", "content": [RESULT]}], ["function_result"]),
        (
            [{"type": "user_input", "content": [RESULT, {"type": "text", "text": "hi"}]}],
            ["function_result", "user_input"],
        ),
        ([{"type": "user_input"}], ["user_input"]),
    ],
)
def test_every_way_to_write_input_means_steps(given: object, kinds: list[str]) -> None:
    """Text, contents and steps are one thing; results may stand inside a user's content."""
    assert kinds == [step["type"] for step in steps_of(given)]


# ---- over HTTP


def test_the_events_are_the_recorded_ones() -> None:
    """Names, order and members of a stream that thinks, speaks and calls."""
    step = Step(reasoning="Look up.", text="One moment.", tool_calls=[Call("get_weather", {"city": "Oslo"}, id="c1")])
    with Referee([step]) as referee:
        got = post(referee, {"input": OSLO, "stream": True, "generation_config": {"thinking_summaries": "auto"}})
    names = [line.removeprefix("event: ") for line in got.data.decode().split("\n") if line.startswith("event: ")]
    assert ["interaction.created", "interaction.status_update", "step.start", "step.delta"] == names[:4]
    assert ["step.stop", "interaction.completed", "done"] == names[-3:]
    assert "[DONE]" == got.events[-1]
    found = [event for event in got.chunks if event["event_type"] == "step.delta"]
    assert ["thought_summary", "thought_summary", "thought_signature", "text", "text", "arguments_delta"] == [
        as_object(event["delta"])["type"] for event in found
    ]
    starts = [as_object(event["step"]) for event in got.chunks if event["event_type"] == "step.start"]
    call = {"id": "c1", "type": "function_call", "name": "get_weather", "arguments": {}}
    assert [{"type": "thought"}, {"type": "model_output"}, call] == starts
    whole = as_object(got.chunks[-1]["interaction"])
    usage = as_object(whole["usage"])
    assert ("requires_action", 2) == (whole["status"], usage["total_thought_tokens"])
    assert "steps" not in whole


def test_a_whole_interaction_and_its_stream_say_the_same() -> None:
    """Steps, id and usage are equal, whichever way they come."""
    step = Step(reasoning="Hm.", text="It is so.", usage={"total_cached_tokens": 9})
    with Referee([step, step]) as referee:
        whole, streamed = (post(referee, {"input": OSLO, "stream": stream}) for stream in (False, True))
    assert [as_object(one)["type"] for one in as_list(whole.json["steps"])] == ["thought", "model_output"]
    assert "summary" not in as_object(as_list(whole.json["steps"])[0])
    assert ("completed", 9) == (told(streamed)["status"], as_object(whole.json["usage"])["total_cached_tokens"])
    assert "It is so." == "".join(
        as_text(as_object(event["delta"]).get("text")) for event in streamed.chunks if "delta" in event
    )


def test_stored_interactions_can_be_read_and_deleted(referee: Referee) -> None:
    """By their own account, once they are stored."""
    made = post(referee, {"input": OSLO}).json
    place = f"{PATH}/{made['id']}"
    assert made == send(referee, "GET", place, headers=KEY, key=None).json
    assert 404 == send(referee, "GET", place, headers={"x-goog-api-key": "other"}, key=None).status
    assert 200 == send(referee, "DELETE", place, headers=KEY, key=None).status
    assert 404 == post(referee, {"input": BERGEN, "previous_interaction_id": made["id"]}).status
    unstored = post(referee, {"input": OSLO, "store": False}).json
    assert 404 == send(referee, "GET", f"{PATH}/{unstored['id']}", headers=KEY, key=None).status


def test_the_house_model_heeds_the_tool_choice(referee: Referee) -> None:
    """None calls nothing, a list of allowed tools calls the first."""
    two = [*TOOLS, {**TOOLS[0], "name": "get_time"}]
    for choice, called in (("none", None), ({"allowed_tools": {"tools": ["get_time"]}}, "get_time")):
        got = post(referee, {"input": OSLO, "tools": two, "generation_config": {"tool_choice": choice}})
        assert called == as_object(as_list(got.json["steps"])[-1]).get("name")


def test_credentials_models_and_syntax_are_checked(referee: Referee) -> None:
    """Each fault has its own status."""
    assert 403 == send(referee, "POST", PATH, b"{}", key=None).status
    assert 400 == post(referee, {"input": "hi"}, headers={"x-goog-api-key": "bad-key"}).status
    assert 404 == post(referee, {"input": "hi", "model": "gemini-0"}).status
    assert 400 == send(referee, "POST", PATH, b"{}", KEY, None).status
    assert 400 == send(referee, "POST", PATH, b"{", KEY, None).status
    assert 404 == send(referee, "GET", PATH, headers=KEY, key=None).status


def test_the_host_has_its_base_url_and_models(referee: Referee) -> None:
    """As a client of the provider is configured with it."""
    assert f"{referee.url}/gemini-interactions/v1beta" == referee.base_url("gemini-interactions")
    assert MODEL in models_of("gemini-interactions")


def test_scripted_faults_have_the_shape_of_this_api() -> None:
    """A refused signature, and an error event."""
    with Referee([Step(fault=RejectCarrier()), Step(text="a b", fault=ErrorInStream("down", "internal"))]) as referee:
        rejected, cut = (post(referee, {"input": OSLO, "stream": True}) for _ in range(2))
    assert (400, "invalid_request") == (rejected.status, as_object(rejected.json["error"])["code"])
    assert {"error": {"message": "down", "code": "internal"}, "event_type": "error"} == json.loads(cut.events[-1])
    assert b"event: error\n" in cut.data


def test_reset_forgets_what_was_stored(referee: Referee) -> None:
    """After a reset no id is known."""
    made = post(referee, {"input": OSLO}).json
    referee.reset()
    assert 404 == post(referee, {"input": BERGEN, "previous_interaction_id": made["id"]}).status


# ---- recordings


def recordings() -> Iterator[tuple[str, Request]]:
    """Every recorded request, with what earlier responses of its case taught."""
    ledgers: dict[str, Ledger] = {}
    for exchange in exchanges():
        found, response = exchange.data.get("request"), exchange.data["response"]
        if exchange.data["dialect"] != "gemini-interactions" or not found:
            continue
        ledger = ledgers.setdefault(exchange.file, Ledger())
        request = Request(PROFILES[found["body"]["model"]], found["body"], "", ledger)
        yield exchange.id, request
        learn_interactions(ledger, found["body"]["model"], response.get("raw") or response["body"], request.steps)


@pytest.mark.corpus
def test_takes_what_google_took() -> None:
    """All recorded requests are accepted; a recorded response comes back whole or is refused."""
    if corpus() is None:
        pytest.skip("THINKBACK_CORPUS is not set: 0 recordings checked")
    judged = 0
    for place, request in recordings():
        judged += 1
        found = judge(request)
        assert found.ok, (place, found.reason)
        if request.previous is None:
            continue
        stateless = {**request.body, "input": request.steps, "store": False, "previous_interaction_id": None}
        lacking = [step for step in request.steps if step["type"] != "thought"]
        altered = [
            {**step, "signature": f"{as_text(step['signature'])}x"} if "signature" in step else step
            for step in request.steps
        ]
        for steps, status in ((request.steps, 200), (lacking, 400), (altered, 400)):
            again = Request(request.profile, {**stateless, "input": steps}, "", request.ledger)
            assert status == judge(again).status, place
    assert judged >= 8
