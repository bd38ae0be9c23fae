"""The Ollama persona: the think switch, thoughts that come back, lines of JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest

from tests.exchanges import corpus, exchanges
from tests.referee.learning import learn_ollama
from tests.referee.talk import TIME, WEATHER, Body, Got, body, send, user
from thinkback_referee import KNOWN, LOST, Call, ErrorInStream, Referee, Step, code_word, models_of
from thinkback_referee.jsons import as_list, as_object, as_text
from thinkback_referee.messages import Thoughts
from thinkback_referee.ollama import OLLAMA
from thinkback_referee.ollama.judge import judge
from thinkback_referee.ollama.profiles import PROFILES
from thinkback_referee.ollama.request import Request
from thinkback_referee.persona import Persona
from thinkback_referee.script import MalformedJson, RejectCarrier

QWEN, OSS, PLAIN, BARE = "qwen3:4b", "gpt-oss:20b", "llama3.2:3b", "gemma3:4b"
PATH = "/ollama/api/chat"
OSLO, BERGEN = "What is the weather in Oslo?", "And Bergen?"
CALL: Body = {"function": {"name": "get_weather", "arguments": {"city": "Oslo"}}}
KEY = 'call:get_weather:{"city": "Oslo"}'


def said(text: str = "", *calls: Body, **fields: object) -> Body:
    return {"role": "assistant", "content": text, **({"tool_calls": list(calls)} if calls else {}), **fields}


def result(name: str = "get_weather") -> Body:
    return {"role": "tool", "tool_name": name, "content": "rain"}


def post(referee: Referee, content: Body) -> Got:
    return send(referee, "POST", PATH, json.dumps(content).encode(), {}, None)


def told(got: Got) -> Body:
    """The message of a response, whole or in lines."""
    lines = [as_object(json.loads(line)) for line in got.data.decode().split("\n") if line]
    messages = [as_object(line["message"]) for line in lines]
    texts = {name: "".join(as_text(one.get(name)) for one in messages) for name in ("content", "thinking")}
    calls = [call for one in messages for call in as_list(one.get("tool_calls"))]
    return {"role": "assistant", **texts, **({"tool_calls": calls} if calls else {})}


@dataclass
class Client:
    """A faithful client: gives every message back as it came."""

    referee: Referee
    name: str
    parameters: Body = field(default_factory=dict)
    messages: list[Body] = field(default_factory=list)

    def ask(self, text: str) -> str:
        self.messages.append(user(text))
        while True:
            got = post(self.referee, body(self.name, *self.messages, tools=[WEATHER], **self.parameters))
            assert (200, None) == (got.status, got.headers.get("x-referee")), got.data
            message = told(got)
            self.messages.append(message)
            calls = [as_object(as_object(call)["function"]) for call in as_list(message.get("tool_calls"))]
            if not calls:
                return as_text(message["content"])
            self.messages += [result(as_text(call["name"])) for call in calls]


def known(text: str) -> str:
    return KNOWN.format(word=code_word(text))


@pytest.mark.parametrize("stream", [{}, {"stream": False}])
@pytest.mark.parametrize(("name", "think"), [(QWEN, True), (QWEN, None), (OSS, "low"), (OSS, False)])
def test_a_faithful_client_hears_the_code_word_of_each_turn(
    referee: Referee, name: str, think: object, stream: Body
) -> None:
    """Thoughts of the open turn are read; gpt-oss thinks even when told not to."""
    client = Client(referee, name, {**stream, **({} if think is None else {"think": think})})
    assert f"Here is what I found: get_weather: rain; {known(OSLO)}." == client.ask(OSLO)
    assert f"Here is what I found: get_weather: rain; {known(BERGEN)}." == client.ask(BERGEN)


def test_thoughts_left_out_are_lost(referee: Referee) -> None:
    """Without them in the tool loop the model says so."""
    got = post(referee, body(QWEN, user(OSLO), said("", CALL), result(), stream=False, tools=[WEATHER]))
    assert as_text(told(got)["content"]).endswith(f"{LOST}.")


def judged(*messages: Body, name: str = QWEN, thoughts: Thoughts | None = None, **members: object) -> tuple[int, str]:
    found = judge(Request(PROFILES[name], body(name, *messages, **members)), thoughts or Thoughts())
    return found.status, found.message


@pytest.mark.parametrize("think", [True, False, None, "high", "medium", "low", "max"])
def test_the_think_values_are_taken(think: object) -> None:
    """Booleans and four words, at models that think."""
    assert (200, "") == judged(user("hi"), think=think)


@pytest.mark.parametrize("think", ["xhigh", "none", "", 1.5])
def test_other_think_values_are_refused(think: object) -> None:
    """With Ollama's list of what is valid."""
    text = f'invalid think value: "{think}" (must be "high", "medium", "low", "max", true, or false)'
    assert (400, text) == judged(user("hi"), think=think)


@pytest.mark.parametrize(("think", "status"), [(True, 400), ("low", 400), (False, 200), (None, 200)])
def test_a_model_that_cannot_think_says_so(think: object, status: int) -> None:
    """Asking for thoughts is refused, asking for none is not."""
    message = f'"{PLAIN}" does not support thinking' if status == 400 else ""
    assert (status, message) == judged(user("hi"), name=PLAIN, think=think)


def test_a_model_without_tools_refuses_them() -> None:
    """By its full name."""
    text = f"registry.ollama.ai/library/{BARE} does not support tools"
    assert (400, text) == judged(user("hi"), name=BARE, tools=[WEATHER])


def minted() -> Thoughts:
    thoughts = Thoughts()
    thoughts.add([KEY], "because.")
    thoughts.add(["text:42"], "so.")
    return thoughts


LOOP = (user("hi"), said("", CALL, thinking="because."), result())


@pytest.mark.parametrize(
    ("messages", "message"),
    [
        (LOOP, ""),
        ((user("hi"), said("", CALL), result()), ""),
        (
            (user("hi"), said("", CALL, thinking="because"), result()),
            "messages[1].thinking is not the one that was gener",
        ),
        ((user("hi"), said("42", thinking="so."), user("on")), ""),
        ((user("hi"), said("42", thinking="because."), user("on")), "messages[1].thinking is not the one that was gen"),
        ((user("hi"), said("43", thinking="anything"), user("on")), ""),
        (
            (*LOOP, said("", CALL, thinking="because."), result()),
            "messages[3].thinking repeats that of an earlier mess",
        ),
    ],
)
def test_thoughts_come_back_unaltered_or_not_at_all(messages: tuple[Body, ...], message: str) -> None:
    """Altered and repeated thoughts are refused; nothing is required, and strangers' text passes."""
    status, text = judged(*messages, thoughts=minted())
    assert (400 if message else 200, True) == (status, text.startswith(message)), text


@pytest.mark.parametrize(
    ("messages", "message"),
    [
        (({"role": "developer", "content": "hi"},), 'invalid role "developer" at messages[0]'),
        (({**user("hi"), "thinking": "x"},), 'invalid role "user" at messages[0]'),
        (
            (user("hi"), said("yo", reasoning_content="x"), user("on")),
            'unknown field "reasoning_content" at messages[1]',
        ),
        ((user("hi"), said("", {**CALL, "x": 1}), result()), 'unknown field "x" at messages[1]'),
        ((user("hi"), result()), "no tool call precedes messages[1]"),
        ((user("hi"), said("", CALL), result("get_time")), "no tool call precedes messages[2]"),
        ((user("hi"), said("", CALL), user("on")), "tool calls of messages[1] are not answered"),
        ((user("hi"), said("", CALL)), "tool calls of messages[1] are not answered"),
        ((user("hi"), said("yo")), "the last message is the assistant's"),
        (
            (user("hi"), said("", {"function": {"name": "f", "arguments": "{}"}}), result("f")),
            "json: cannot unmarshal string into Go struct field ChatRequest.messages.tool_calls.function.arguments of",
        ),
    ],
)
def test_malformed_conversations_are_refused(messages: tuple[Body, ...], message: str) -> None:
    """What Ollama would render in silence is refused here."""
    status, text = judged(*messages)
    assert (400, True) == (status, text.startswith(message)), text


def test_an_answer_may_name_its_call_by_id() -> None:
    """Newer clients send tool_call_id beside or instead of the name."""
    assert (200, "") == judged(user("hi"), said("", CALL), {"role": "tool", "tool_call_id": "c", "content": "rain"})


def test_thoughts_are_refused_where_nobody_reads_them() -> None:
    """A model that does not think takes no thinking."""
    status, text = judged(user("hi"), said("yo", thinking="x"), user("on"), name=PLAIN)
    assert (400, "messages[1].thinking is for models that think") == (status, text)


def test_a_response_and_its_lines_have_the_recorded_shapes() -> None:
    """Thinking lines, then content, then calls, then the counts."""
    step = Step(reasoning="Look up.", text="A moment.", tool_calls=[Call("get_weather", '{"city":"Oslo"}', "c1")])
    with Referee([step, step]) as referee:
        whole, streamed = (post(referee, body(QWEN, user(OSLO), stream=stream)) for stream in (False, True))
    lines = [json.loads(line) for line in streamed.data.decode().splitlines()]
    assert "application/x-ndjson" == streamed.headers["content-type"]
    assert told(whole) == told(streamed)
    assert [{"role": "assistant", "content": "", "thinking": "Look"}, False] == [lines[0]["message"], lines[0]["done"]]
    call = {"id": "c1", "function": {"index": 0, "name": "get_weather", "arguments": {"city": "Oslo"}}}
    assert [call] == lines[-2]["message"]["tool_calls"]
    assert (True, "stop", 6) == (lines[-1]["done"], lines[-1]["done_reason"], lines[-1]["eval_count"])
    assert whole.json["eval_count"] == lines[-1]["eval_count"]
    assert ["model", "created_at", "message", "done", "done_reason"] == list(whole.json)[:5]


def test_a_thought_in_spite_of_the_switch_leaks_into_the_content() -> None:
    """As recorded of qwen3: closed by a lone tag, and not known as a thought when it comes back."""
    with Referee([Step(reasoning="Hm.", text="Yes."), Step(text="ok"), Step(reasoning="Hm.", text="Yes.")]) as referee:
        leaked = told(post(referee, body(QWEN, user("hi"), think=False, stream=False)))
        assert ("Hm.\n</think>\n\nYes.", "") == (leaked["content"], leaked["thinking"])
        moved = said("Yes.", thinking="Hm.")
        assert 200 == post(referee, body(QWEN, user("hi"), moved, user("on"), think=False)).status
        plain = told(post(referee, body("deepseek-r1:8b", user("hi"), think=False, stream=False)))
    assert ("Yes.", "") == (plain["content"], plain["thinking"])


def test_models_and_syntax_are_checked_but_no_keys(referee: Referee) -> None:
    """404 and 400 in Ollama's shape."""
    found = [
        post(referee, body("unknown:1b", user("hi"))),
        send(referee, "POST", PATH, b"{}"),
        send(referee, "POST", PATH, b"{"),
        send(referee, "POST", "/ollama/api/generate", b"{}"),
    ]
    assert [404, 400, 400, 404] == [got.status for got in found]
    assert ["model 'unknown:1b' not found", "model is required"] == [got.json["error"] for got in found[:2]]
    listed = as_list(send(referee, "GET", "/ollama/api/tags").json["models"])
    assert QWEN in [as_object(row)["name"] for row in listed]


def test_two_tools_are_offered_and_both_results_heard(referee: Referee) -> None:
    """Parallel calls are answered by name."""
    client = Client(referee, QWEN, {"tools": [WEATHER, TIME]})
    client.messages = [user("Both for Oslo, in parallel")]
    got = told(post(referee, body(QWEN, *client.messages, tools=[WEATHER, TIME])))
    names = [as_text(as_object(as_object(call)["function"])["name"]) for call in as_list(got["tool_calls"])]
    final = told(post(referee, body(QWEN, *client.messages, got, *map(result, names), tools=[WEATHER, TIME])))
    assert f"{names[0]}: rain; {names[1]}: rain" in as_text(final["content"])


def test_the_host_has_its_base_url_and_models(referee: Referee) -> None:
    """As a client of the provider is configured with it."""
    assert f"{referee.url}/ollama/api" == referee.base_url("ollama")
    assert QWEN in models_of("ollama")


def test_scripted_faults_have_ollamas_shape() -> None:
    """A refused thought, an error line, a line that is broken off."""
    steps = [
        Step(fault=RejectCarrier()),
        Step(text="a b", fault=ErrorInStream("down")),
        Step(text="a", fault=MalformedJson()),
    ]
    with Referee(steps) as referee:
        rejected, cut, broken = (post(referee, body(QWEN, user("hi"))) for _ in steps)
    assert (400, True) == (rejected.status, "is not the one that was generated" in as_text(rejected.json["error"]))
    assert {"error": "down"} == json.loads(cut.data.splitlines()[-1])
    with pytest.raises(json.JSONDecodeError):
        told(broken)


def test_reset_forgets_thoughts(referee: Referee) -> None:
    """After a reset no thought is known, so none is altered."""
    first = told(post(referee, body(QWEN, user("hi"))))
    altered = body(QWEN, user("hi"), {**first, "thinking": "else"}, user("on"))
    assert 400 == post(referee, altered).status
    referee.reset()
    assert 200 == post(referee, altered).status


@pytest.mark.corpus
def test_takes_what_ollama_took() -> None:
    """All recorded requests are accepted, and those with a thought no longer once it is altered."""
    if corpus() is None:
        pytest.skip("THINKBACK_CORPUS is not set: 0 recordings checked")
    personas: dict[str, Persona[Request, Thoughts]] = {}
    judged_requests = altered = 0
    for exchange in exchanges():
        found, response = exchange.data.get("request"), exchange.data["response"]
        if exchange.data["dialect"] != "ollama" or exchange.data["provider"] != "ollama" or not found:
            continue
        judged_requests += 1
        persona = personas.setdefault(exchange.file, Persona(OLLAMA))
        request = Request(PROFILES[found["body"]["model"]], found["body"])
        verdict = judge(request, persona.ledger)
        assert verdict.ok, (exchange.id, verdict.reason)
        for message in request.said.assistants:
            if message.thinking in persona.ledger.of(message.keys) and message.thinking:
                altered += 1
                again = json.loads(json.dumps(found["body"]))
                again["messages"][message.index]["thinking"] += "."
                refused = judge(Request(request.profile, again), persona.ledger)
                assert (400, f"changed at messages[{message.index}]") == (refused.status, refused.reason), exchange.id
        learn_ollama(persona.ledger, response.get("raw") or response["body"])
    assert (judged_requests >= 20, altered >= 4) == (True, True)
