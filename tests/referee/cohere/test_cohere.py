"""The Cohere persona: shapes, thinking that comes back, and whole turns over HTTP."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest

from tests.exchanges import corpus, exchanges
from tests.referee.learning import learn_cohere
from tests.referee.talk import TIME, WEATHER, Body, Got, body, result, said, send, user
from thinkback_referee import KNOWN, LOST, Call, ErrorInStream, Referee, Step, code_word, models_of
from thinkback_referee.cohere import COHERE
from thinkback_referee.cohere.judge import judge
from thinkback_referee.cohere.profiles import PROFILES
from thinkback_referee.cohere.request import Request
from thinkback_referee.jsons import as_list, as_object, as_text
from thinkback_referee.messages import Thoughts
from thinkback_referee.persona import Persona
from thinkback_referee.script import RejectCarrier

MODEL, PLAIN = "command-a-reasoning-08-2025", "command-a-03-2025"
PATH = "/cohere/v2/chat"
OSLO, BERGEN = "What is the weather in Oslo?", "And Bergen?"


def thought(thinking: str, text: str = "", *calls: str) -> Body:
    """An assistant message with thinking, and a text or calls beside it."""
    items: list[Body] = [{"type": "thinking", "thinking": thinking}]
    if text:
        items.append({"type": "text", "text": text})
    return {**said("", *calls), "content": items}


def post(referee: Referee, content: Body, key: str | None = "test-key", path: str = PATH) -> Got:
    return send(referee, "POST", path, json.dumps(content).encode(), {}, key)


def told(got: Got) -> Body:
    """The message of a response, whole or streamed."""
    if not got.events:
        return dict(as_object(got.json["message"]))
    items: dict[object, Body] = {}
    calls: dict[object, Body] = {}
    for event in got.chunks:
        delta = as_object(as_object(event.get("delta")).get("message"))
        match event["type"]:
            case "content-start":
                items[event["index"]] = dict(as_object(delta["content"]))
            case "content-delta":
                for name, piece in as_object(delta["content"]).items():
                    items[event["index"]][name] = as_text(items[event["index"]][name]) + as_text(piece)
            case "tool-call-start":
                calls[event["index"]] = dict(as_object(delta["tool_calls"]))
            case "tool-call-delta":
                function = dict(as_object(calls[event["index"]]["function"]))
                piece = as_object(as_object(delta["tool_calls"])["function"])["arguments"]
                function["arguments"] = as_text(function["arguments"]) + as_text(piece)
                calls[event["index"]]["function"] = function
    called: Body = {"tool_calls": list(calls.values())} if calls else {}
    return {"role": "assistant", "content": list(items.values()), **called}


@dataclass
class Client:
    """A faithful client: gives every message back as it came."""

    referee: Referee
    stream: bool = False
    messages: list[Body] = field(default_factory=list)

    def ask(self, text: str) -> str:
        self.messages.append(user(text))
        while True:
            got = post(self.referee, body(MODEL, *self.messages, tools=[WEATHER], stream=self.stream))
            assert (200, None) == (got.status, got.headers.get("x-referee")), got.data
            message = self.kept(told(got))
            self.messages.append(message)
            calls = [as_text(as_object(call)["id"]) for call in as_list(message.get("tool_calls"))]
            if not calls:
                return "".join(as_text(as_object(item).get("text")) for item in as_list(message["content"]))
            self.messages += [result(call) for call in calls]

    def kept(self, message: Body) -> Body:
        """What the client stores of a message: all of it."""
        return message


def known(*texts: str) -> str:
    return "; ".join(KNOWN.format(word=code_word(text)) for text in texts)


@pytest.mark.parametrize("stream", [False, True])
def test_a_faithful_client_hears_the_code_word_of_each_turn(referee: Referee, stream: bool) -> None:
    """Thinking that goes back with the calls is read, that of older turns is not."""
    client = Client(referee, stream)
    assert f"Here is what I found: get_weather: rain; {known(OSLO)}." == client.ask(OSLO)
    assert f"Here is what I found: get_weather: rain; {known(BERGEN)}." == client.ask(BERGEN)


def test_a_client_that_drops_thinking_is_forgotten(referee: Referee) -> None:
    """Nothing is required; without its notes the model says so."""

    class Forgetful(Client):
        def kept(self, message: Body) -> Body:
            items = [item for item in as_list(message.get("content")) if as_object(item)["type"] != "thinking"]
            return {**{name: value for name, value in message.items() if name != "content"}, "content": items}

    assert Forgetful(referee).ask(OSLO).endswith(f"{LOST}.")


def judged(
    *messages: Body, name: str = MODEL, thoughts: Thoughts | None = None, members: Body | None = None
) -> tuple[int, str]:
    found = judge(Request(PROFILES[name], body(name, *messages, **(members or {}))), thoughts or Thoughts())
    return found.status, found.message


def minted() -> Thoughts:
    thoughts = Thoughts()
    thoughts.add(["call:c1"], "because.")
    thoughts.add(["text:42"], "so.")
    return thoughts


LOOP = (user("hi"), thought("because.", "", "c1"), result("c1"))


@pytest.mark.parametrize(
    ("messages", "message"),
    [
        (LOOP, ""),
        ((user("hi"), said("", "c1"), result("c1")), ""),
        ((user("hi"), thought("because!", "", "c1"), result("c1")), "thinking of messages[1] is not the one"),
        ((user("hi"), thought("so.", "42"), user("on")), ""),
        ((user("hi"), thought("So.", "42"), user("on")), "thinking of messages[1] is not the one that was generated"),
        ((user("hi"), thought("anything", "made by the client"), user("on")), ""),
        ((*LOOP, thought("because.", "", "c2"), result("c2")), "thinking of messages[3] repeats that of an earlier"),
    ],
)
def test_thinking_comes_back_unaltered_or_not_at_all(messages: tuple[Body, ...], message: str) -> None:
    """Altered and repeated thinking is refused; nothing is required, and strangers' text passes."""
    status, text = judged(*messages, thoughts=minted())
    assert (400 if message else 200, True) == (status, message in text), text


def test_a_model_without_thoughts_takes_none() -> None:
    """Neither the switch nor the items."""
    assert (400, True) == (
        judged(user("hi"), name=PLAIN, members={"thinking": {"type": "enabled"}})[0],
        "thinking is not supported" in judged(user("hi"), thought("x", "y"), user("on"), name=PLAIN)[1],
    )
    assert (200, "") == judged(user("hi"), name=PLAIN, members={"thinking": {"type": "disabled"}})


@pytest.mark.parametrize(
    ("messages", "status", "message"),
    [
        ((), 400, "messages must not be empty"),
        (({"role": "developer", "content": "hi"},), 400, "invalid role 'developer' provided for messages[0]"),
        ((user("hi"), {"role": "system", "content": "be brief"}), 400, "system turn must be the first in the list"),
        (({"role": "system", "content": "a"}, {"role": "system", "content": "b"}, user("hi")), 200, ""),
        (
            ({**user("hi"), "reasoning_content": "x"},),
            422,
            "unknown field: parameter 'reasoning_content' is not a valid",
        ),
        (
            ({"role": "user", "content": [{"type": "text", "text": "x", "index": 0}]},),
            422,
            "parameter 'index' is not a",
        ),
        (
            ({"role": "user", "content": [{"type": "thinking", "thinking": "x"}]},),
            400,
            "invalid content of messages[0]",
        ),
        (({"role": "user", "content": [{"type": "video"}]},), 400, "invalid content of messages[0]"),
        ((user("hi"), thought("because."), user("on")), 400, "messages[1] must have text or tool calls beside its thi"),
        ((user("hi"), said(None), user("on")), 400, "message must not be empty in a turn"),
        ((user("hi"), said("yo")), 400, "the last message must be from the user or a tool"),
        ((user("hi"), said("", "a"), user("on")), 400, "tool calls of messages[1] must be followed by their results"),
        ((user("hi"), said("", "a")), 400, "tool calls of messages[1] must be followed by their results"),
        ((user("hi"), result("a")), 400, "tool call id not found in previous tool calls"),
        ((user("hi"), {"role": "tool", "content": "x"}), 400, "tool call id must be provided with tool message"),
        ((user("hi"), said("", "a", "a"), result("a"), result("a")), 400, "cannot have duplicate tool ids"),
        (
            (user("hi"), {"role": "assistant", "tool_calls": [{"id": "a"}]}, result("a")),
            400,
            "tool call must be of type fu",
        ),
        ((user("hi"), said("", "a"), {**result("a"), "name": "get_weather"}), 422, "parameter 'name' is not a valid"),
        (
            (
                user("hi"),
                said("", "a"),
                {**result("a"), "content": [{"type": "document", "document": {"data": "rain"}}]},
            ),
            200,
            "",
        ),
    ],
)
def test_malformed_conversations_are_refused(messages: tuple[Body, ...], status: int, message: str) -> None:
    """Shape, roles and pairing, each with its own sentence."""
    found = judged(*messages)
    assert (status, True) == (found[0], message in found[1]), found


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"thinking": {"type": "adaptive"}}, "thinking type must be one of 'enabled' or 'disabled'"),
        ({"thinking": {"type": "enabled", "token_budget": 0}}, "thinking token_budget must be a positive integer"),
        ({"thinking": {"type": "enabled", "token_budget": True}}, "thinking token_budget must be a positive integer"),
        ({"thinking": {"type": "enabled", "tokenBudget": 5}}, "unknown field: parameter 'tokenBudget' is not a valid"),
        ({"reasoning_effort": "high"}, "unknown field: parameter 'reasoning_effort' is not a valid field"),
        ({"thinking": {"type": "enabled", "token_budget": 5}}, ""),
        ({"thinking": {"type": "disabled"}}, ""),
    ],
)
def test_thinking_controls_are_checked(members: Body, message: str) -> None:
    """The type is one of two, the budget positive, all names are known."""
    found = judged(user("hi"), members=members)
    assert (found[0] == 200, True) == (not message, message in found[1]), found


def test_a_response_and_its_stream_have_the_recorded_shapes() -> None:
    """Thinking, text and calls; usage with thinking inside the output."""
    step = Step(reasoning="Look up.", text="A moment.", tool_calls=[Call("get_weather", {"city": "Oslo"}, "c1")])
    with Referee([step, step]) as referee:
        whole, streamed = (post(referee, body(MODEL, user(OSLO), stream=stream)) for stream in (False, True))
    assert ["id", "message", "finish_reason", "usage"] == list(whole.json)
    assert told(whole) == told(streamed)
    assert ["thinking", "text"] == [as_object(item)["type"] for item in as_list(told(whole)["content"])]
    kinds = [event["type"] for event in streamed.chunks]
    assert ["message-start", "content-start", "content-delta", "content-delta", "content-end"] == kinds[:5]
    assert ["tool-call-end", "message-end"] == kinds[-2:]
    assert streamed.data.startswith(b"event: message-start\ndata: {")
    assert streamed.data.endswith(b"data: [DONE]\n\n")
    end = as_object(streamed.chunks[-1]["delta"])
    tokens = as_object(as_object(end["usage"])["tokens"])
    assert ("TOOL_CALL", 2) == (end["finish_reason"], tokens["reasoning_tokens"])


def test_thinking_that_is_off_is_absent(referee: Referee) -> None:
    """Disabled, or a model that has none: no thinking item."""
    for name, members in ((MODEL, {"thinking": {"type": "disabled"}}), (PLAIN, {})):
        got = post(referee, body(name, user(OSLO), **members))
        assert ["text"] == [as_object(item)["type"] for item in as_list(told(got)["content"])]


def test_the_house_model_heeds_the_tool_choice(referee: Referee) -> None:
    """NONE calls nothing."""
    got = post(referee, body(MODEL, user(OSLO), tools=[WEATHER, TIME], tool_choice="NONE"))
    assert "tool_calls" not in told(got)


def test_credentials_models_and_syntax_are_checked(referee: Referee) -> None:
    """401, 404 and 400 with Cohere's sentences; both base paths work."""
    found = [
        post(referee, body(MODEL, user("hi")), key=None),
        post(referee, body(MODEL, user("hi")), key="bad-key"),
        post(referee, body("command-x", user("hi"))),
        send(referee, "POST", PATH, b"{}"),
        send(referee, "POST", PATH, b"{"),
        send(referee, "POST", "/cohere/v2/embed", b"{}"),
        post(referee, body(MODEL, user("hi")), path="/cohere/chat"),
    ]
    assert [401, 401, 404, 400, 400, 404, 200] == [got.status for got in found]
    assert ["no api key supplied", "invalid api token"] == [got.json["message"] for got in found[:2]]
    assert "a model parameter is required for this endpoint." == found[3].json["message"]
    listed = send(referee, "GET", "/cohere/v1/models").json["models"]
    assert MODEL in [as_object(row)["name"] for row in as_list(listed)]


def test_the_host_has_its_base_url_and_models(referee: Referee) -> None:
    """As a client of the provider is configured with it."""
    assert f"{referee.url}/cohere/v2" == referee.base_url("cohere")
    assert MODEL in models_of("cohere")


def test_scripted_faults_have_coheres_shape() -> None:
    """Refused thinking, and an error that ends a stream."""
    with Referee([Step(fault=RejectCarrier()), Step(text="a b", fault=ErrorInStream("down"))]) as referee:
        rejected, cut = (post(referee, body(MODEL, user("hi"), stream=True)) for _ in range(2))
    assert (400, True) == (rejected.status, "is not the one that was generated" in as_text(rejected.json["message"]))
    assert "ERROR" == as_object(cut.chunks[-1]["delta"])["finish_reason"]


def test_reset_forgets_thoughts(referee: Referee) -> None:
    """After a reset no thought is known, so none is altered."""
    client = Client(referee)
    client.ask(OSLO)
    referee.reset()
    client.messages[1]["content"] = [{"type": "thinking", "thinking": "else"}]
    client.ask(BERGEN)


@pytest.mark.corpus
def test_takes_what_cohere_took() -> None:
    """All recorded requests are accepted; a recorded thought comes back as it was or is refused."""
    if corpus() is None:
        pytest.skip("THINKBACK_CORPUS is not set: 0 recordings checked")
    judged_requests = replayed = 0
    for exchange in exchanges():
        found, response = exchange.data.get("request"), exchange.data["response"]
        if exchange.data["dialect"] != "cohere" or not found:
            continue
        judged_requests += 1
        persona = Persona(COHERE)
        request = Request(PROFILES[found["body"]["model"]], found["body"])
        assert judge(request, persona.ledger).ok, exchange.id
        if "body" not in response:
            continue
        replayed += 1
        learn_cohere(persona.ledger, response["body"])
        for kept, status in ((None, 200), (-1, 400)):
            message = json.loads(json.dumps(response["body"]["message"]))
            message.pop("citations", None)
            message["content"][0]["thinking"] = message["content"][0]["thinking"][:kept]
            again = {**found["body"], "messages": [*found["body"]["messages"], message, user("and?")]}
            assert status == judge(Request(request.profile, again), persona.ledger).status, exchange.id
    assert (judged_requests >= 6, replayed >= 3) == (True, True)
