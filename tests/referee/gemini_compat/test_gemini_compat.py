"""Gemini behind chat completions: signatures on calls, Google's own refusals, and whole turns by the OpenAI SDK."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest

from tests.referee.talk import WEATHER, Body, Client, body, post, result, said, send, user
from thinkback_referee import KNOWN, Call, ErrorInStream, Referee, Step, Verdict, code_word, models_of
from thinkback_referee.gemini.ledger import Mint
from thinkback_referee.gemini.profiles import PROFILES
from thinkback_referee.gemini_compat import GEMINI_COMPAT
from thinkback_referee.gemini_compat.translate import native_body
from thinkback_referee.jsons import as_list, as_object, as_text
from thinkback_referee.persona import Asked, Persona
from thinkback_referee.script import RejectCarrier

HOST = "gemini-openai"
PREFIX = "/v1beta/openai"
THREE, TWO = "gemini-3-flash-preview", "gemini-2.5-flash"
OSLO, BERGEN = "What is the weather in Oslo?", "And Bergen?"
SIGNED = "c2lnbmF0dXJl"
SKIP = "skip_thought_signature_validator"
MISSING = (
    "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, "
    "and missing thought_signature may lead to degraded model performance. Additional data, function call "
    "`default_api:get_weather` , position 2. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures "
    "for more details."
)


def google(signature: str) -> Body:
    return {"extra_content": {"google": {"thought_signature": signature}}}


def signed(signature: str, *calls: str, **fields: object) -> Body:
    """An assistant message whose first call is signed."""
    message = said(None, *calls, **fields)
    made = [dict(as_object(call)) for call in as_list(message["tool_calls"])]
    made[0] |= google(signature)
    return {**message, "tool_calls": made}


def verdict(*messages: Body, name: str = THREE, **parameters: object) -> Verdict:
    persona = Persona(GEMINI_COMPAT)
    persona.ledger.add(SIGNED, Mint(HOST, THREE, call="get_weather"))
    persona.ledger.add("dGV4dA==", Mint(HOST, THREE))
    asked = Asked(HOST, "", {}, body(name, *messages, **parameters), name, False)
    return persona.judge(asked)


def known(*texts: str) -> str:
    return "; ".join(KNOWN.format(word=code_word(text)) for text in texts)


@pytest.mark.parametrize("name", [THREE, TWO])
@pytest.mark.parametrize("stream", [False, True])
def test_the_openai_sdk_hears_the_code_word(referee: Referee, name: str, stream: bool) -> None:
    """A client that keeps what the SDK gives it, extra content included, is told what it was thinking."""
    messages: list[Body] = [user(OSLO)]
    with openai.OpenAI(base_url=referee.base_url(HOST), api_key="key", max_retries=0) as client:
        create: Any = client.chat.completions.create
        for _ in range(2):
            made = create(model=name, messages=messages, tools=[WEATHER], stream=stream)
            message: Body = {"role": "assistant", "content": ""}
            for part in made if stream else [made]:
                choice = part.choices[0]
                seen = (choice.delta if stream else choice.message).model_dump(exclude_none=True)
                text = as_text(message["content"]) + as_text(seen.get("content"))
                message = {**message, **seen, "content": text}
            messages.append(message)
            messages += [
                result(as_text(call["id"])) for call in as_list(message.get("tool_calls")) if isinstance(call, dict)
            ]
    answer = as_text(messages[-1]["content"])
    assert f"Here is what I found: get_weather: rain; {known(OSLO)}." == answer


def test_signatures_of_text_turns_come_back_on_the_message(referee: Referee) -> None:
    """The second turn knows the first one's code word, which stood on the message alone."""

    class Google(Client):
        def ask(self, text: str) -> str:
            self.messages.append(user(text))
            got = post(self.referee, self.host, {**self.parameters, "messages": self.messages}, prefix=PREFIX)
            assert (200, None) == (got.status, got.headers.get("x-referee"))
            self.messages.append(got.message)
            return as_text(got.message["content"])

    client = Google(referee, HOST, {"model": THREE}, [])
    client.ask(OSLO)
    assert client.ask(BERGEN).endswith(f"{known(OSLO)}.")


@pytest.mark.parametrize(
    ("messages", "status", "reason"),
    [
        ([user("hi"), signed(SIGNED, "a"), result("a")], 200, ""),
        ([user("hi"), signed(SIGNED, "a", thought_signature=SIGNED), result("a")], 200, ""),
        ([user("hi"), said(None, "a", **google(SIGNED)), result("a")], 200, ""),
        ([user("hi"), signed(SIGNED, "a", "b"), result("a"), result("b")], 200, ""),
        ([user("hi"), signed(SKIP, "a"), result("a")], 200, ""),
        ([user("hi"), said(None, "a"), result("a")], 400, "missing at contents[1]"),
        ([user("hi"), said(None, "a"), result("a"), said("done"), user("on")], 200, ""),
        ([user("hi"), signed("c2lnbmF0dXJm", "a"), result("a")], 400, "changed at contents[1].parts[0]"),
        ([user("hi"), signed("dGV4dA==", "a"), result("a")], 400, "moved at contents[1].parts[0]"),
        ([user("hi"), said("yo", **google("dGV4dA==")), user("on")], 200, ""),
        ([user("hi"), said("yo", **google("dGV4dA=")), user("on")], 400, "changed at contents[1].parts[0]"),
        (
            [user("hi"), signed(SIGNED, "a"), result("a"), signed(SIGNED, "b"), result("b")],
            400,
            "repeated at contents[3]",
        ),
        ([user("hi"), signed(SIGNED, "a", "b"), result("a")], 400, "unanswered call at contents[1]"),
        ([user("hi"), signed(SIGNED, "a"), result("z")], 400, "answer without a call at contents[2]"),
        ([{"role": "system", "content": "be brief"}, user("hi")], 200, ""),
        (
            [{"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "image_url", "image_url": {}}]}],
            200,
            "",
        ),
        ([{"role": "critic", "content": "hi"}], 400, "bad role at messages[0]"),
        ([{**user("hi"), "reasoning_content": "x"}], 400, "unknown field reasoning_content at 'messages[0]'"),
        (
            [user("hi"), {"role": "assistant", "tool_calls": [{"id": "a"}]}],
            400,
            "bad call at messages[1].tool_calls[0]",
        ),
        (
            [user("hi"), {"role": "assistant", "tool_calls": [{"x": 1}]}],
            400,
            "unknown field x at 'messages[1].tool_calls",
        ),
        ([], 400, "no messages"),
    ],
)
def test_signatures_and_shapes_are_judged_as_google_does(messages: list[Body], status: int, reason: str) -> None:
    """The translated request is held to the native rules."""
    found = verdict(*messages)
    assert (status, True) == (found.status, found.reason.startswith(reason)), found.reason


def test_a_missing_signature_has_googles_text_in_a_list() -> None:
    """The error is a list of one object, with function and position named."""
    found = verdict(user("hi"), said(None, "a"), result("a"))
    assert [{"error": {"code": 400, "message": MISSING, "status": "INVALID_ARGUMENT"}}] == found.body
    assert MISSING == found.message


def test_gemini_25_takes_calls_without_ids_and_signatures() -> None:
    """Recorded: the id is empty, and nothing was validated."""
    made = said(None, "", "")
    assert verdict(user("hi"), made, result(""), result(""), name=TWO).ok


@pytest.mark.parametrize(
    ("name", "parameters", "text"),
    [
        (THREE, {"reasoning_effort": "none"}, "Budget 0 is invalid. This model only works in thinking mode."),
        (
            "gemini-3.7-flash",
            {"reasoning_effort": "minimal"},
            "Thinking level MINIMAL is not supported for this model.",
        ),
        (
            "gemini-2.5-pro",
            {"reasoning_effort": "none"},
            "Budget 0 is invalid. This model only works in thinking mode.",
        ),
        (TWO, {"reasoning_effort": "xhigh"}, "Invalid reasoning_effort: xhigh."),
        (THREE, {"reasoning_effort": {"effort": "low"}}, "Invalid reasoning_effort: "),
        (
            TWO,
            {"reasoning_effort": "low", "extra_body": {"google": {"thinking_config": {"thinking_budget": 1}}}},
            "You can only set only one of thinking budget and thinking level.",
        ),
        (
            TWO,
            {"extra_body": {"google": {"thinking_config": {"thinking_level": "low"}}}},
            "Thinking level is not supported for this model.",
        ),
        (THREE, {"store": False}, 'Invalid JSON payload received. Unknown name "store": Cannot find field.'),
    ],
)
def test_parameters_that_do_not_fit_are_refused(name: str, parameters: Body, text: str) -> None:
    """Efforts become levels or budgets, and are refused as these are."""
    found = verdict(user("hi"), name=name, **parameters)
    assert (400, True) == (found.status, found.message.startswith(text)), found.message


@pytest.mark.parametrize(
    ("name", "effort", "config"),
    [
        (THREE, "minimal", {"thinkingLevel": "MINIMAL"}),
        ("gemini-3.5-flash", "xhigh", {"thinkingLevel": "XHIGH"}),
        (TWO, "none", {"thinkingBudget": 0}),
        (TWO, "medium", {"thinkingBudget": 8192}),
    ],
)
def test_efforts_become_the_models_own_control(name: str, effort: str, config: Body) -> None:
    """Levels from 3 on, budgets before."""
    native = native_body(PROFILES[name], body(name, user("hi"), reasoning_effort=effort))
    assert not isinstance(native, Verdict)
    assert {"thinkingConfig": config} == native["generationConfig"]


@pytest.mark.parametrize(
    ("choice", "mode"),
    [
        ("none", {"mode": "NONE"}),
        ("required", {"mode": "ANY"}),
        ({"type": "function", "function": {"name": "f"}}, {"mode": "ANY", "allowedFunctionNames": ["f"]}),
    ],
)
def test_tool_choices_become_modes(choice: object, mode: Body) -> None:
    """All, none, some or one function."""
    native = native_body(PROFILES[THREE], body(THREE, user("hi"), tool_choice=choice))
    assert not isinstance(native, Verdict)
    assert {"functionCallingConfig": mode} == native["toolConfig"]


def test_arguments_that_are_no_json_are_empty() -> None:
    """A client's own broken arguments do not break the translation."""
    made = said(None, "a")
    as_list(made["tool_calls"])[0]["function"]["arguments"] = "{"  # type: ignore[index]
    native = native_body(PROFILES[TWO], body(TWO, user("hi"), made))
    assert not isinstance(native, Verdict)
    assert '"args": {}' in json.dumps(native)


@pytest.mark.parametrize(("name", "identified"), [(THREE, True), (TWO, False)])
def test_the_signature_stands_on_the_first_call(name: str, identified: bool) -> None:
    """Two calls, one signature; 2.5 gives its calls empty ids."""
    step = Step(reasoning="Hm.", tool_calls=[Call("get_weather", {"city": "Oslo"}), Call("get_weather", "{}")])
    with Referee([step]) as referee:
        got = post(referee, HOST, body(name, user(OSLO), tools=[WEATHER]), prefix=PREFIX)
    first, second = map(as_object, as_list(got.message["tool_calls"]))
    assert ("extra_content" in first, "extra_content" in second) == (True, False)
    assert [identified, identified] == [bool(call["id"]) for call in (first, second)]
    assert "tool_calls" == as_object(as_list(got.json["choices"])[0])["finish_reason"]


def test_the_signature_of_a_text_stands_on_the_message() -> None:
    """Twice in a whole response, in the last delta of a stream."""
    with Referee([Step(reasoning="Hm.", text="It is so.")] * 2) as referee:
        whole = post(referee, HOST, body(THREE, user("hi")), prefix=PREFIX)
        streamed = post(
            referee, HOST, body(THREE, user("hi"), stream=True, stream_options={"include_usage": True}), prefix=PREFIX
        )
    google_part = as_object(as_object(whole.message["extra_content"])["google"])
    assert whole.message["thought_signature"] == google_part["thought_signature"]
    assert "extra_content" in streamed.deltas[-1]
    assert "It is so." == "".join(as_text(delta.get("content")) for delta in streamed.deltas)
    usage = as_object(streamed.chunks[-1]["usage"])
    assert usage["total_tokens"] == int(str(usage["prompt_tokens"])) + int(str(usage["completion_tokens"])) + 1
    assert b"data: [DONE]\n\n" == streamed.data[-14:]


def test_thoughts_are_shown_in_tags_when_asked_for() -> None:
    """With include_thoughts the content begins with them."""
    config: Body = {"google": {"thinking_config": {"include_thoughts": True}}}
    with Referee([Step(reasoning="Hm.", text="Yes.")]) as referee:
        got = post(referee, HOST, body(THREE, user("hi"), extra_body=config), prefix=PREFIX)
    assert "<thought>Hm.</thought>Yes." == got.message["content"]


def test_credentials_models_and_syntax_are_checked(referee: Referee) -> None:
    """Every refusal is a list of one error."""
    path = f"/{HOST}{PREFIX}/chat/completions"
    found = [
        post(referee, HOST, body(THREE, user("hi")), key=None, prefix=PREFIX),
        post(referee, HOST, body(THREE, user("hi")), key="bad-key", prefix=PREFIX),
        post(referee, HOST, body("gemini-0", user("hi")), prefix=PREFIX),
        send(referee, "POST", path, b"{"),
        send(referee, "POST", path, b"{}"),
    ]
    assert [403, 400, 404, 400, 400] == [got.status for got in found]
    assert all(isinstance(json.loads(got.data), list) for got in found)
    assert 404 == send(referee, "POST", f"/{HOST}{PREFIX}/completions").status


def test_the_models_are_listed(referee: Referee) -> None:
    """With the prefix that Google gives them; requests may have it too."""
    rows = as_list(send(referee, "GET", f"/{HOST}{PREFIX}/models").json["data"])
    assert f"models/{THREE}" in [as_object(row)["id"] for row in rows]
    assert 200 == post(referee, HOST, body(f"models/{THREE}", user("hi")), prefix=PREFIX).status


def test_the_host_has_its_base_url_and_models(referee: Referee) -> None:
    """As a client of the provider is configured with it."""
    assert f"{referee.url}/gemini-openai/v1beta/openai" == referee.base_url("gemini-openai")
    assert THREE in models_of("gemini-openai")


def test_scripted_faults_have_googles_shape() -> None:
    """A refused signature, and an error inside a stream."""
    with Referee(
        [Step(fault=RejectCarrier()), Step(text="a b", fault=ErrorInStream("down", "UNAVAILABLE"))]
    ) as referee:
        rejected, cut = (post(referee, HOST, body(THREE, user("hi"), stream=True), prefix=PREFIX) for _ in range(2))
    assert "Corrupted thought signature." in rejected.data.decode()
    assert "down" == json.loads(cut.events[-1])[0]["error"]["message"]


def test_reset_forgets_signatures(referee: Referee) -> None:
    """What was minted before is unknown afterwards."""
    message = post(referee, HOST, body(THREE, user("hi")), prefix=PREFIX).message
    referee.reset()
    assert 400 == post(referee, HOST, body(THREE, user("hi"), message, user("on")), prefix=PREFIX).status
