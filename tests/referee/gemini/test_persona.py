"""Google's two doors over HTTP: keys, whole bodies, streams, and a turn that proves that signatures came back."""

from __future__ import annotations

import base64
import json

import pytest

from tests.referee.gemini.google import KEY, STUDIO, TOOLS, VERTEX, Client, answer, model, parts_of, post, user
from tests.referee.talk import Body, send
from thinkback_referee import KNOWN, LOST, Call, ErrorInStream, Referee, Step, code_word, models_of
from thinkback_referee.jsons import as_list, as_object
from thinkback_referee.script import RejectCarrier

OSLO = "What is the weather in Oslo?"
BOTH = "Give me both for Oslo, in parallel"
BERGEN = "And Bergen?"
THREE, TWO = "gemini-3-flash-preview", "gemini-2.5-flash"
METHODS = ["generateContent", "streamGenerateContent?alt=sse", "streamGenerateContent"]


def client(referee: Referee, host: str, name: str, method: str, **config: object) -> Client:
    path = f"{STUDIO if host == 'gemini' else VERTEX}/{name}:{method}"
    return Client(referee, path, "ya29.token" if host == "vertex" else None, config)


def known(*texts: str) -> str:
    return "; ".join(KNOWN.format(word=code_word(text)) for text in texts)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("host", "name"), [("gemini", THREE), ("vertex", THREE), ("gemini", TWO), ("vertex", TWO)])
def test_a_faithful_client_hears_the_code_word(referee: Referee, host: str, name: str, method: str) -> None:
    """The answer names the code word that only the returned signature can have told the model."""
    said = client(referee, host, name, method).ask(OSLO)
    assert f"Here is what I found: get_weather: rain, 7 degrees; {known(OSLO)}." == said
    assert [200, 200] == [exchange.status for exchange in referee.requests]


@pytest.mark.parametrize("method", METHODS)
def test_signatures_of_finished_turns_are_read_too(referee: Referee, method: str) -> None:
    """The second turn knows the first one's code word."""
    talk = client(referee, "gemini", THREE, method)
    talk.ask(BOTH)
    assert talk.ask(BERGEN).endswith(f"{known(BOTH, BERGEN)}.")


def test_a_client_that_goes_from_vertex_to_ai_studio_keeps_its_signatures(referee: Referee) -> None:
    """The two hosts read each other's."""
    talk = client(referee, "vertex", THREE, "generateContent")
    talk.ask(OSLO)
    other = client(referee, "gemini", THREE, "generateContent")
    other.contents = talk.contents
    assert other.ask(BERGEN).endswith(f"{known(OSLO, BERGEN)}.")


def test_a_client_that_drops_signatures_is_refused_by_3_and_forgotten_by_25(referee: Referee) -> None:
    """2.5 goes on without its notes, Gemini 3 does not go on."""

    class Forgetful(Client):
        def kept(self, parts: list[Body]) -> list[Body]:
            return [{name: value for name, value in part.items() if name != "thoughtSignature"} for part in parts]

    forgetful = Forgetful(referee, f"{STUDIO}/{TWO}:generateContent")
    assert forgetful.ask(OSLO).endswith(f"{LOST}.")
    with pytest.raises(AssertionError, match="missing a thought_signature"):
        Forgetful(referee, f"{STUDIO}/{THREE}:generateContent").ask(OSLO)


def test_a_whole_response_has_the_recorded_shape() -> None:
    """Members, their order, and where thought and signature stand, at both hosts."""
    step = Step(reasoning="Look it up.", tool_calls=[Call("get_weather", {"city": "Oslo"}), Call("get_time", {})])
    with Referee([step, step]) as referee:
        studio, vertex = (
            client(referee, host, THREE, "generateContent", thinkingConfig={"includeThoughts": True})
            for host in ("gemini", "vertex")
        )
        body: Body = {"contents": [user(OSLO)], "tools": TOOLS, "generationConfig": studio.config}
        one, two = post(referee, studio.path, body).json, post(referee, vertex.path, body, {}, "token").json
    assert ["candidates", "usageMetadata", "modelVersion", "responseId"] == list(one)
    assert ["candidates", "usageMetadata", "modelVersion", "createTime", "responseId"] == list(two)
    candidate = as_object(as_list(one["candidates"])[0])
    assert ("STOP", 0, "Model generated function call(s).") == tuple(
        candidate[name] for name in ("finishReason", "index", "finishMessage")
    )
    thought, first, second = map(as_object, as_list(as_object(candidate["content"])["parts"]))
    assert {"text": "Look it up.", "thought": True} == thought
    assert ["functionCall", "thoughtSignature"] == list(first)
    assert ["functionCall"] == list(second)
    assert 8 == len(str(as_object(first["functionCall"])["id"]))
    usage = as_object(one["usageMetadata"])
    counted = [usage[name] for name in ("promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount")]
    assert 3 == usage["thoughtsTokenCount"]
    assert sum(map(int, map(str, counted))) == usage["totalTokenCount"]
    assert ("standard", "ON_DEMAND") == (usage["serviceTier"], as_object(two["usageMetadata"])["trafficType"])


@pytest.mark.parametrize(
    ("name", "declared", "signed"), [(THREE, True, [-1]), (THREE, False, [-1]), (TWO, True, [0]), (TWO, False, [])]
)
def test_the_signature_of_a_text_stands_where_the_model_puts_it(name: str, declared: bool, signed: list[int]) -> None:
    """Gemini 3: an empty last part. 2.5: the first part, and only where functions are offered."""
    body: Body = {"contents": [user("hi")], **({"tools": TOOLS} if declared else {})}
    with Referee([Step(reasoning="Hm.", text="It is so.")]) as referee:
        parts = parts_of(post(referee, f"{STUDIO}/{name}:streamGenerateContent?alt=sse", body))
    assert "It is so." == "".join(str(part["text"]) for part in parts)
    assert [parts[at] for at in signed] == [part for part in parts if "thoughtSignature" in part]
    assert not signed or ("" if name == THREE else "It") == parts[signed[0]]["text"]


def test_thoughts_are_shown_only_when_asked_for() -> None:
    """Without includeThoughts the thought shows as a signature and a count."""
    with Referee([Step(reasoning="Hm, hm.", text="Yes.")] * 2) as referee:
        hidden = post(referee, f"{STUDIO}/{THREE}:generateContent", {"contents": [user("hi")]})
        config: Body = {"thinking_config": {"include_thoughts": True}}
        shown = post(
            referee,
            f"{STUDIO}/{THREE}:generateContent",
            {"contents": [user("hi")], "generation_config": config},
        )
    assert 2 == as_object(hidden.json["usageMetadata"])["thoughtsTokenCount"]
    assert [None] == [part.get("thought") for part in parts_of(hidden)]
    assert [True, None] == [part.get("thought") for part in parts_of(shown)]


def test_thinking_that_is_off_makes_no_thought(referee: Referee) -> None:
    """With a budget of 0 the house model thinks nothing, and nothing is signed."""
    talk = client(referee, "gemini", TWO, "generateContent", thinkingConfig={"thinkingBudget": 0})
    talk.ask("hi")
    assert "thoughtSignature" not in json.dumps(talk.contents)


def test_a_stream_is_server_sent_events_or_a_json_array() -> None:
    """With alt=sse each chunk is an event that ends in CR LF twice; without it they are one array."""
    path, body = f"{STUDIO}/{THREE}:streamGenerateContent", {"contents": [user("hi")]}
    with Referee([Step(reasoning="Hm.", text="Yes, it is.")] * 2) as referee:
        events, array = post(referee, f"{path}?alt=sse", body), post(referee, path, body)
    assert events.data.startswith(b'data: {"candidates":[{"content":{"parts":[{"text":"Yes,"}],"role":"model"},"ind')
    assert events.data.endswith(b"}\r\n\r\n")
    assert ("application/json; charset=UTF-8", b"[{", b"}]") == (
        array.headers["content-type"],
        array.data[:2],
        array.data[-2:],
    )
    assert ["Yes,", " it", " is.", ""] == [part["text"] for part in parts_of(array)]


def test_a_signature_is_base64_and_long_for_long_thoughts() -> None:
    """Opaque, of bytes, and never the same twice."""
    steps = [Step(reasoning="word " * count, text="ok") for count in (1, 200)]
    with Referee(steps) as referee:
        found = [
            str(
                parts_of(post(referee, f"{STUDIO}/{THREE}:generateContent", {"contents": [user("hi")]}))[-1][
                    "thoughtSignature"
                ]
            )
            for _ in steps
        ]
    assert len(base64.b64decode(found[0], validate=True)) < len(base64.b64decode(found[1], validate=True)) - 400


def test_accounts_get_different_signatures() -> None:
    """The same request under two keys is signed differently."""
    with Referee([Step(reasoning="Hm.", text="ok")] * 2) as referee:
        path = f"{STUDIO}/{THREE}:generateContent"
        one, two = (
            parts_of(post(referee, path, {"contents": [user("hi")]}, {"x-goog-api-key": key}))[0]["thoughtSignature"]
            for key in ("one", "two")
        )
    assert one != two


@pytest.mark.parametrize(
    ("path", "headers", "token", "status", "text"),
    [
        (f"{STUDIO}/{THREE}:generateContent", {}, None, 403, "Method doesn't allow unregistered callers (callers with"),
        (f"{STUDIO}/{THREE}:generateContent?key=bad-key", {}, None, 400, "API key not valid. Please pass a valid API "),
        (f"{STUDIO}/{THREE}:generateContent?key=good", {}, None, 200, ""),
        (f"{VERTEX}/{THREE}:generateContent", KEY, None, 401, "Request is missing required authentication credential."),
        (f"{VERTEX}/{THREE}:generateContent", {}, "bad-key", 401, "Request had invalid authentication credentials. Ex"),
        (f"{STUDIO}/gemini-0:generateContent", KEY, None, 404, "models/gemini-0 is not found for API version v1beta, "),
        (f"{VERTEX}/gemini-0:generateContent", {}, "token", 404, "Publisher Model `projects/p1/locations/global/publi"),
        (f"{STUDIO}/{THREE}:countTokens", KEY, None, 404, "no such path"),
    ],
)
def test_credentials_and_models_are_checked(
    referee: Referee, path: str, headers: dict[str, str], token: str | None, status: int, text: str
) -> None:
    """Keys in header or query at AI Studio, a bearer token at Vertex, and each host's own refusals."""
    got = post(referee, path, {"contents": [user("hi")]}, headers, token)
    assert status == got.status
    assert str(as_object(got.json.get("error")).get("message", "")).startswith(text)


@pytest.mark.parametrize("data", [b"{", b"[]", b'{"contents": NaN}'])
def test_bodies_that_are_no_json_objects_are_refused(referee: Referee, data: bytes) -> None:
    """A syntax error is an invalid argument."""
    got = send(referee, "POST", f"{STUDIO}/{THREE}:generateContent", data, KEY, None)
    assert (400, "INVALID_ARGUMENT") == (got.status, as_object(got.json["error"])["status"])


def test_errors_of_a_plain_stream_come_in_an_array(referee: Referee) -> None:
    """A refusal of streamGenerateContent without alt=sse is a list of one error."""
    body: Body = {"contents": [user("hi"), model({"functionCall": {"name": "f"}}), user(answer("f"))]}
    path = f"{STUDIO}/{THREE}:streamGenerateContent"
    plain, events = post(referee, path, body), post(referee, f"{path}?alt=sse", body)
    assert [json.loads(events.data)] == json.loads(plain.data)


def test_the_models_are_listed(referee: Referee) -> None:
    """AI Studio lists its models."""
    got = send(referee, "GET", STUDIO, headers=KEY, key=None)
    assert f"models/{THREE}" in [as_object(row)["name"] for row in as_list(got.json["models"])]


def test_scripted_faults_speak_googles_language() -> None:
    """A rejected signature and an error inside a stream have Google's shapes."""
    path, body = f"{STUDIO}/{THREE}:streamGenerateContent?alt=sse", {"contents": [user("hi")]}
    with Referee([Step(fault=RejectCarrier()), Step(text="a b c", fault=ErrorInStream("down", "UNAVAILABLE"))]) as ref:
        rejected, cut = post(ref, path, body), post(ref, path, body)
    assert (400, "Corrupted thought signature.") == (rejected.status, as_object(rejected.json["error"])["message"])
    assert {"error": {"code": 500, "message": "down", "status": "UNAVAILABLE"}} == json.loads(cut.events[-1])


@pytest.mark.parametrize(
    ("step", "reason"), [(Step(refusal="No."), "SAFETY"), (Step(finish="MAX_TOKENS"), "MAX_TOKENS")]
)
def test_finish_reasons_are_honoured(step: Step, reason: str) -> None:
    """A refusal ends for safety; a scripted finish wins."""
    with Referee([step]) as referee:
        got = post(referee, f"{STUDIO}/{THREE}:generateContent", {"contents": [user("hi")]})
    assert reason == as_object(as_list(got.json["candidates"])[0])["finishReason"]


@pytest.mark.parametrize(
    ("mode", "called"), [({"mode": "NONE"}, ""), ({"mode": "ANY", "allowedFunctionNames": ["get_time"]}, "get_time")]
)
def test_the_house_model_heeds_the_function_calling_mode(referee: Referee, mode: Body, called: str) -> None:
    """NONE calls nothing, ANY with a name calls it."""
    config: Body = {"functionCallingConfig": mode}
    body: Body = {"contents": [user(OSLO)], "tools": TOOLS, "toolConfig": config}
    parts = parts_of(post(referee, f"{STUDIO}/{THREE}:generateContent", body))
    assert called == as_object(parts[0].get("functionCall")).get("name", "")


@pytest.mark.parametrize(("host", "base"), [("gemini", "v1beta"), ("vertex", "v1/projects/referee/locations/global")])
def test_base_urls_are_what_clients_are_configured_with(referee: Referee, host: str, base: str) -> None:
    """The version, and at Vertex project and place; both hosts have all models."""
    assert f"{referee.url}/{host}/{base}" == referee.base_url(host)
    assert {THREE, TWO} <= set(models_of(host))


def test_reset_forgets_signatures(referee: Referee) -> None:
    """What was minted before is unknown afterwards."""
    talk = client(referee, "gemini", THREE, "generateContent")
    talk.ask(OSLO)
    referee.reset()
    with pytest.raises(AssertionError, match="Corrupted thought signature"):
        talk.ask(BERGEN)
